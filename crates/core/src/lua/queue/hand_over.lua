-- hand_over: the usual ways of a contended lock. Follows grant.lua.
--
-- KEYS  as usual.lua
-- ARGV  as usual.lua
-- Returns  nothing: it goes on to the part that follows; each function returns the answer of its
--          command, or nothing, and then nothing was written
--
-- Why: a contended lock does this all the time, and the parts behind usual.lua take half as long
-- again. The other cases are left to them: a counter that is missing or ahead of the clock, a lease
-- with nested holds, marks, a head that is dead or of the same runtime, a queue that is long (for a
-- heartbeat it may be) or about to expire. Every decision and every format is as in row.lua, line.lua,
-- ask.lua and pass_on.lua.

-- Ends a lease and grants the lock to the head of the queue; `text` is the lock.
local function hand_over(text, at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local counter, expires, holder, fence, _, ends = string.match(text, CONTENDED)
  if holder ~= ARGV[arg + 1] or fence ~= ARGV[arg + 2] or #counter ~= 16 or counter >= micros
    or millis >= ends or expires < after(retention) then
    return nil
  end
  local follows = ARGV[arg] == 'next'
  local runtime = follows and string.sub(ARGV[arg + 3], 1, 36)
  local line = call('ZRANGE', queue, 0, 7, 'WITHSCORES')
  local head, others = line[1], #line / 2 - 1
  if not head or head == runtime or others == 7 then return nil end
  local texts = call('HMGET', waiters, head, runtime or head)
  local number, heartbeat, heard, life, seen, its_label = string.match(texts[1] or '', PLACE)
  if not number or follows and texts[2] or now > heard + life * 1000 or retention < tonumber(life) then
    return nil
  end
  if follows and call('PTTL', queue) < tonumber(window) then return nil end
  local first, newest, behind = mint(counter, seen)
  if newest ~= micros then return nil end

  local id = head .. ':' .. number
  local waits = follows or others > 0
  -- A write of nothing, which a full server accepts; then it refuses none of the others. The place of
  -- the head goes last: a refusal before it changes nothing for those who wait.
  call('GETEX', lease)
  call('SET', lease, (waits and 'w' or '') .. newest .. ' ' .. expires .. ' ' .. id .. ' '
    .. first .. ' ' .. micros .. ' ' .. after(life) .. ' ' .. its_label, 'KEEPTTL')
  if follows then
    call('ZADD', queue, line[#line] + 1, runtime)
    call('HSET', waiters, runtime, place_text(
      string.sub(ARGV[arg + 3], 38), ARGV[arg + 5], window, ARGV[arg + 4], label))
  end
  call('ZREM', queue, head)
  call('HDEL', waiters, head)
  redis.pcall('PUBLISH', channels .. head, 'granted ' .. id .. ' ' .. first .. ' ' .. newest .. ' '
    .. heartbeat .. ' ' .. life .. (waits and ' 1 ' or ' 0 ') .. behind .. ' '
    .. string.sub(lease, #channels - 6, -8))
  if not follows then return {'released'} end
  return {'next-queued', tonumber(life), others}
end

-- Stands behind others in the queue of a lock that is held.
local function line_up(text, at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local _, _, holder, _, _, ends = string.match(text, CONTENDED)
  local id, least = ARGV[arg + 1], tonumber(window) or 0
  if not holder or holder == id or millis >= ends or least <= 0 then return nil end
  local line = call('ZRANGE', queue, 0, 7, 'WITHSCORES')
  local runtime = string.sub(id, 1, 36)
  if #line == 0 or #line == 16 then return nil end
  local texts = call('HMGET', waiters, runtime, line[1])
  if texts[1] or not texts[2] or call('PTTL', queue) < least then return nil end

  call('ZADD', queue, line[#line] + 1, runtime)
  call('HSET', waiters, runtime, place_text(
    string.sub(id, 38), ARGV[arg + 3], window, ARGV[arg + 2], label))
  return {'queued', ends - millis - 1, #line / 2}
end

-- Refreshes the place of a runtime that waits for a lock that is held.
local function beat(text, at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local _, size, _, _, holder, fence, _, ends = string.find(text, CONTENDED)
  local id, least = ARGV[arg + 1], tonumber(window) or 0
  if not holder or holder == id or millis >= ends or least <= 0 then return nil end
  local runtime = string.sub(id, 1, 36)
  local number, heartbeat, _, _, seen = string.match(call('HGET', waiters, runtime) or '', PLACE)
  local ahead = number == string.sub(id, 38) and call('ZRANK', queue, runtime)
  if not ahead or call('PTTL', queue) < least then return nil end

  if above(ARGV[arg + 3], heartbeat) then heartbeat = ARGV[arg + 3] end
  if above(ARGV[arg + 2], seen) then seen = ARGV[arg + 2] end
  call('HSET', waiters, runtime, place_text(number, heartbeat, window, seen, label))
  -- A holder that may keep the lock idle is told that it is wanted.
  if ahead == 0 and string.sub(text, size + 1, size + 1) == '~' then
    redis.pcall('PUBLISH', channels .. string.sub(holder, 1, 36), 'wanted ' .. holder .. ' ' .. fence
      .. ' ' .. string.sub(lease, #channels - 6, -8))
  end
  return {'queued', ends - millis - 1, ahead}
end

local WAYS = {acquire = line_up, heartbeat = beat, release = hand_over, next = hand_over}

-- Runs one of them, if the lock is waited for. A key of another type is found before anything is
-- written, and left to the general ways; any other failure is the answer.
local function quick(text, at, arg)
  local way = WAYS[ARGV[arg]]
  if way and text == nil then text = redis.pcall('GET', KEYS[4 * at - 3]) end
  if not way or type(text) ~= 'string' or string.sub(text, 1, 1) ~= 'w' then return nil end
  local ok, answer = pcall(way, text, at, arg)
  if ok then return answer end
  if not is_foreign(answer) then return {'refused', words(answer)} end
end
