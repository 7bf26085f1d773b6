-- rest: all commands, by their words. Follows ask.lua.
--
-- KEYS  as head.lua
-- ARGV  as head.lua
-- Returns  nothing: it goes on to usual.lua; `run_alone` returns the answer of a command, and how many arguments
--          it had
--
-- Why: this slow path serves every case, and is the one that has to be right; usual.lua is a copy for the cases that
-- occur all the time.

-- Writes the fence of a lease that stands; nil if another has passed it.
local function fix(fence)
  if lock.fence == fence then return true end
  if fence <= lock.counter then return nil end
  lock.counter, lock.fence = fence, fence
  return true
end

local function extend(life)
  lock.ends = math.max(lock.ends, now_ms + 1 + life)
  save(life)
  return left()
end

local SIZES = {ask = 5, settle = 4, renew = 5, spread = 7, hold = 6, ['end'] = 5, keep = 5,
  withdraw = 3, force = 3, pass = 3, inspect = 2}
-- What a node does not do that has lost data: it does not know.
local VOTES = {ask = true, settle = true, renew = true, spread = true, hold = true, inspect = true}
local WORDS = {}
function WORDS.ask(a) return ask(ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], tonumber(ARGV[a + 4]), heard) end
function WORDS.settle(a)
  if not is_its(ARGV[a + 1], ARGV[a + 2]) or lock.kept or not fix(tonumber(ARGV[a + 3])) then return 0 end
  if granted(line()) == 1 then
    save()
    return {'settled', left()}
  end
  save()
  return left()
end
function WORDS.renew(a)
  if not is_its(ARGV[a + 1], ARGV[a + 2]) or lock.kept or not fix(tonumber(ARGV[a + 3])) then return 0 end
  return extend(tonumber(ARGV[a + 4]))
end
function WORDS.spread(a)
  local acq, attempt, fence, before = ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  if not lock.acq then
    if fence <= lock.counter or is_marked(acq) or is_marked(acq .. '/' .. attempt) then return 0 end
    lock.acq, lock.attempt, lock.fence, lock.before, lock.counter = acq, attempt, fence, before, fence
    lock.since, lock.ends, lock.kept = format('%d', now), now_ms + 1 + ttl, nil
    lock.holds, lock.label = ARGV[a + 5] .. '/' .. ARGV[a + 6], label
    save(ttl)
    return left()
  end
  if not is_its(acq, attempt) or lock.kept or not fix(fence) then return 0 end
  return extend(ttl)
end
function WORDS.hold(a)
  if not is_its(ARGV[a + 1], ARGV[a + 2]) or lock.kept then return 0 end
  local number = tonumber(match(lock.holds, '/(%d+)$'))
  if tonumber(ARGV[a + 4]) <= number then return left() end
  lock.holds = ARGV[a + 3] .. '/' .. ARGV[a + 4]
  return extend(tonumber(ARGV[a + 5]))
end
local function finish(acq, attempt, fence, life)
  local ended = is_its(acq, attempt) and is_in_block(fence) and not lock.kept
  if lock.waiting then call('HDEL', lock.waiters, acq) end
  if ended then
    lock.acq = nil
    pass_on()
    save()
  elseif lock.kept and is_its(acq, attempt) and is_in_block(fence) then
    return {'kept', left()}
  elseif life > 0 then
    mark(acq .. '/' .. attempt, life)
  end
  return ended and 1 or 0
end
WORDS['end'] = function(a)
  return finish(ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4]))
end
function WORDS.keep(a)
  local rest = tonumber(ARGV[a + 4])
  if not is_its(ARGV[a + 1], ARGV[a + 2]) or not is_in_block(tonumber(ARGV[a + 3])) then return 0 end
  if not lock.kept then
    lock.kept, lock.ends = true, now_ms + 1 + rest
    save(rest)
    return {'kept', rest}
  end
  return {'kept', left()}
end
function WORDS.withdraw(a)
  local acq, ended = ARGV[a + 1], 0
  call('HDEL', lock.waiters, acq)
  mark(acq, tonumber(ARGV[a + 2]))
  local turn = call('HGET', lock.waiters, '!')
  local is_turn = type(turn) == 'string' and match(turn, '^%S+') == acq
  if lock.acq == acq and not lock.kept then
    lock.acq, ended = nil, 1
    pass_on()
    save()
  elseif is_turn then
    call('HDEL', lock.waiters, '!')
    if not lock.acq then pass_on() end
  end
  return {'withdrawn', ended}
end
function WORDS.force(a)
  local fence = tonumber(ARGV[a + 2])
  if lock.acq ~= ARGV[a + 1] or not is_in_block(fence) then return 0 end
  tell('force-released', lock.acq, math.max(lock.fence, 1))
  lock.acq = nil
  local counter = math.max(lock.counter, fence)
  lock.counter = math.min(counter + 1, 9007199254740991)
  pass_on()
  save()
  return {'ended', format('%d', counter < lock.counter and lock.counter or 0)}
end
function WORDS.pass(a)
  local fence = tonumber(ARGV[a + 2])
  if fence > lock.counter then
    lock.counter = fence
    save()
  end
  return {'ended', format('%d', lock.counter)}
end
function WORDS.inspect(a)
  if not lock.acq then return {'free', format('%d', lock.counter)} end
  local all, waiters = line(), {}
  for i, one in ipairs(all) do
    waiters[i] = {one.acq, format('%d', math.max(now - one.since, 0)), one.silent, one.label}
  end
  return {'held', lock.acq, lock.attempt, format('%d', lock.fence), format('%d', lock.before),
    match(lock.holds, '^%d+'), left(), lock.label, format('%d', now - tonumber(lock.since)),
    lock.kept and 1 or 0, waiters}
end

-- A usual command, without a word.
local function run_short(short)
  local acq, attempt, ballot = match(short, '^ (%S+) (%d+) (%d*)$')
  if ballot == '' then return finish(acq, attempt, 0, 0) end
  return ask(acq, attempt, ballot, 0, heard)
end

local function run_alone(word, at, arg, common, out)
  local is_short = sub(word, 1, 1) == ' '
  local size = is_short and 1 or SIZES[word]
  if out and (VOTES[word] or is_short and sub(word, -1) ~= ' ') then return {'out', out}, size end
  if common then
    ttl, heard, label = tonumber(sub(common, 1, 8)), tonumber(sub(common, 10, 17)), sub(common, 19)
  end
  local ok, answer = pcall(function()
    read(at)
    if lock.layout then return {'layout', lock.layout} end
    local answer
    if is_short then answer = run_short(word) else answer = WORDS[word](arg) end
    for _, message in ipairs(messages) do call('PUBLISH', message[1], message[2]) end
    messages = {}
    return answer
  end)
  if ok then return answer, size end
  messages = {}
  return {'refused', type(answer) == 'table' and answer.err or tostring(answer)}, size
end
