-- rest: the commands that usual.lua leaves, and those behind them. Follows usual.lua, row.lua, line.lua,
-- ask.lua, pass_on.lua and withdraw.lua.
--
-- KEYS  as usual.lua
-- ARGV  as usual.lua
-- Returns  as usual.lua
--
-- Why: commands on one lock keep their order, so that all behind the first are run here.
local function asker_at(arg)
  return {id = ARGV[arg], ttl = ARGV[arg + 1], seen = ARGV[arg + 2], label = ARGV[arg + 3]}
end

local function waiter_at(arg)
  local asker = asker_at(arg)
  asker.heartbeat, asker.window = ARGV[arg + 4], ARGV[arg + 5]
  return asker
end

local function run(at, arg)
  local word, id, first = ARGV[arg], ARGV[arg + 1], ARGV[arg + 2]
  read(unpack(KEYS, 4 * at - 3, 4 * at))
  if word == 'withdraw' then return withdraw(id, ARGV[arg + 2]) end
  if word == 'next' then return pass_on(id, first, waiter_at(arg + 3)) end
  if word == 'release' then
    local life = tonumber(ARGV[arg + 3])
    return life > 0 and keep(id, first, life) or pass_on(id, first)
  end
  if word == 'hold' then
    return set_holds(id, first, ARGV[arg + 3], ARGV[arg + 4], tonumber(ARGV[arg + 5]))
  end
  local granted = begin(id, tonumber(ARGV[arg + 2]), ARGV[arg + 3], ARGV[arg + 4])
  return granted or ask(word == 'try' and asker_at(arg + 1) or waiter_at(arg + 1))
end

local SIZES = {try = 5, acquire = 7, heartbeat = 7, release = 4, next = 9, hold = 6, withdraw = 3}
local function finish(at, arg)
  local answer = run(at, arg)
  note_more()
  return answer
end

while at <= count do
  local ok, answer = pcall(finish, at, arg)
  answers[at] = ok and answer or {'refused', words(answer)}
  at, arg = at + 1, arg + SIZES[ARGV[arg]]
end
return answers
