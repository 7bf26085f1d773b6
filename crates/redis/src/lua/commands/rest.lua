-- rest: the slow path, for the commands that neither usual.lua nor hand_over.lua serves. Follows row.lua, line.lua, ask.lua,
-- pass_on.lua and withdraw.lua.
--
-- KEYS  as usual.lua
-- ARGV  as usual.lua
-- Returns  nothing: it goes on to usual.lua; `run_alone` returns the answer of a command, and how many
--          arguments it had
--
-- Why: the slow path serves every case, and is the one that has to be right; the fast path is a copy for
-- the cases that occur all the time.
local function asker_at(arg, reads)
  return {id = ARGV[arg], ttl = ttl, seen = ARGV[arg + 1], label = label, reads = reads}
end

local function waiter_at(arg, reads)
  local asker = asker_at(arg, reads)
  asker.heartbeat, asker.window = ARGV[arg + 2], window
  return asker
end

local ASKS = {try = true, acquire = true, heartbeat = true}
local READS = {['read-try'] = 'try', ['read-acquire'] = 'acquire', ['read-heartbeat'] = 'heartbeat', ['read-next'] = 'next'}

local function run(word, reads, at, arg)
  local id, first = ARGV[arg + 1], ARGV[arg + 2]
  -- A full server refuses a grant or a place, unless an earlier command of the call has written. It refuses
  -- no other command.
  read(not ASKS[word], unpack(KEYS, 4 * at - 3, 4 * at))
  if word == 'withdraw' then return withdraw(id, ARGV[arg + 2]) end
  if lock.layout then return {'layout', lock.layout} end
  if word == 'next' then return pass_on(id, first, waiter_at(arg + 3, reads)) end
  if word == 'release' or word == 'keep' and is_shared() then return pass_on(id, first) end
  if word == 'keep' then return keep(id, first, tonumber(ARGV[arg + 3])) end
  if word == 'hold' then
    return set_holds(id, first, ARGV[arg + 3], ARGV[arg + 4], tonumber(ARGV[arg + 5]))
  end
  local granted = not reads and begin(id, tonumber(ttl), ARGV[arg + 2], label)
  return granted or ask(word == 'try' and asker_at(arg + 1, reads) or waiter_at(arg + 1, reads))
end

local SIZES = {try = 3, acquire = 4, heartbeat = 4, release = 3, keep = 4, next = 6, hold = 6,
  withdraw = 3}

local function run_alone(at, arg)
  local reads = READS[ARGV[arg]]
  local word = reads or ARGV[arg]
  local ok, answer = pcall(function()
    local answer = run(word, reads ~= nil, at, arg)
    -- One that asks has saved what it changed. To forget old marks is no reason to refuse it.
    if not ASKS[word] then save() end
    return answer
  end)
  return ok and answer or {'refused', words(answer)}, SIZES[word]
end
