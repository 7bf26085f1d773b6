-- hand_over: the fast path of a lock that is held. Follows tell.lua.
--
-- KEYS  as usual.lua
-- ARGV  as usual.lua
-- Returns  nothing: it goes on to the part that follows; each function returns the answer of its
--          command, or nothing, and then nothing was written
--
-- Why: a contended lock does this all the time, and the slow path takes several times as long where it
-- is needed seldom. The other cases are left to it: a counter that is missing or ahead of the clock, a lease
-- with nested holds, a head that is dead or of the same runtime, a queue that is long (for a
-- heartbeat it may be) or about to expire. Every decision and every format is as in row.lua, line.lua,
-- ask.lua and pass_on.lua.

-- Ends a lease and grants the lock to the head of the queue; `text` is the lock, without the `marks`
-- of marks.
local function hand_over(text, marks, at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local counter, expires, fence, _, ends, holder = string.match(text, CONTENDED)
  if holder ~= ARGV[arg + 1] or fence ~= ARGV[arg + 2] or counter >= micros
    or millis >= ends or expires < after(retention) then
    return nil
  end
  local follows = ARGV[arg] == 'next'
  local runtime = follows and string.sub(ARGV[arg + 3], 1, 36)
  local line = call('ZRANGE', queue, 0, 7, 'WITHSCORES')
  local head, others = line[1], #line / 2 - 1
  if not head or #head ~= 36 or head == runtime or others == 7 then return nil end
  local number, heartbeat, heard, life, seen, its_label = string.match(field(waiters, head) or '', PLACE)
  if not number or follows and call('HSTRLEN', waiters, runtime) > 0 or now > heard + life * 1000 or retention < tonumber(life) then
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
  call('SET', lease, beginning(waits, marks) .. ' ' .. newest .. ' ' .. expires .. ' ' .. first .. ' ' .. micros .. ' '
    .. after(life) .. ' ' .. id .. ' ' .. its_label .. marks, 'KEEPTTL')
  if follows then
    call('ZADD', queue, math.max(line[#line] + 1, now), runtime)
    call('HSET', waiters, runtime, place_text(
      string.sub(ARGV[arg + 3], 38), ARGV[arg + 5], window, ARGV[arg + 4], label))
  end
  call('ZREM', queue, head)
  call('HDEL', waiters, head)
  tell(head, 'granted ' .. id .. ' ' .. first .. ' ' .. newest .. ' ' .. heartbeat .. ' ' .. life
    .. (waits and ' 1 ' or ' 0 ') .. behind .. ' ' .. name_of(lease))
  if not follows then return {'released'} end
  return {'next-queued', tonumber(life), others}
end

-- Stands behind others in the queue of a lock that is held.
local function line_up(text, _, at, arg)
  local call, queue, waiters = redis.call, KEYS[4 * at - 2], KEYS[4 * at - 1]
  local _, _, _, _, ends, holder = string.match(text, CONTENDED)
  local id, least = ARGV[arg + 1], tonumber(window) or 0
  if not holder or holder == id or millis >= ends or least <= 0 then return nil end
  local line = call('ZRANGE', queue, 0, 7, 'WITHSCORES')
  local runtime = string.sub(id, 1, 36)
  if #line == 0 or #line == 16 or #line[1] ~= 36 then return nil end
  if call('HSTRLEN', waiters, runtime) > 0 or call('HSTRLEN', waiters, line[1]) == 0 or call('PTTL', queue) < least then return nil end

  call('ZADD', queue, math.max(line[#line] + 1, now), runtime)
  call('HSET', waiters, runtime, place_text(
    string.sub(id, 38), ARGV[arg + 3], window, ARGV[arg + 2], label))
  return {'queued', ends - millis - 1, #line / 2}
end

-- Tells the holder that it is wanted, if it may keep the lock idle; the label begins behind `size`.
-- ADR 0012
local function recall(text, size, lease, holder, fence)
  if string.sub(text, size + 1, size + 1) == '~' then
    tell(string.sub(holder, 1, 36), 'wanted ' .. holder .. ' ' .. bare(fence) .. ' ' .. name_of(lease))
  end
end

-- Begins the queue of a lock that is held, and that nobody waited for.
local function begin_line(text, marks, at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local _, size, _, _, fence, _, ends, holder = string.find(text, UNCONTENDED)
  local id, least = ARGV[arg + 1], tonumber(window) or 0
  if not holder or holder == id or millis >= ends or least <= 0 or call('EXISTS', queue, waiters) > 0 then
    return nil
  end
  local runtime = string.sub(id, 1, 36)
  -- If the new keys cannot get their time to live, neither stays.
  local ok, failure = pcall(function()
    call('ZADD', queue, micros, runtime)
    call('HSET', waiters, runtime, place_text(
      string.sub(id, 38), ARGV[arg + 3], window, ARGV[arg + 2], label))
    call('PEXPIRE', queue, least + 60000)
    call('PEXPIRE', waiters, least + 60000)
  end)
  if not ok then
    call('DEL', queue, waiters)
    error(failure, 0)
  end
  call('SET', lease, beginning(true, marks) .. string.sub(text, 12) .. marks, 'KEEPTTL')
  recall(text, size, lease, holder, fence)
  return {'queued', ends - millis - 1, 0}
end

-- Answers one that only tries, and is not in the queue, that the lock is held.
local function turn_away(text, _, at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local _, size, _, _, _, _, ends, holder = string.find(text, UNCONTENDED)
  if not size then _, size, _, _, _, _, ends, holder = string.find(text, CONTENDED) end
  local id = ARGV[arg + 1]
  local runtime = string.sub(id, 1, 36)
  if not holder or holder == id or millis >= ends or call('ZRANK', queue, runtime)
    or call('HSTRLEN', waiters, runtime) > 0 then
    return nil
  end
  -- A replica, whose text may be old, refuses this.
  call('GETEX', lease)
  return {'busy', ends - millis - 1, string.sub(text, size + 1, size + 1) == '~' and 1 or 0}
end

-- Refreshes the place of a runtime that waits for a lock that is held.
local function beat(text, _, at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local _, size, _, _, fence, _, ends, holder = string.find(text, CONTENDED)
  local id, least = ARGV[arg + 1], tonumber(window) or 0
  if not holder or holder == id or millis >= ends or least <= 0 then return nil end
  local runtime = string.sub(id, 1, 36)
  local number, heartbeat, _, _, seen = string.match(field(waiters, runtime) or '', PLACE)
  local ahead = number == string.sub(id, 38) and call('ZRANK', queue, runtime)
  if not ahead or call('PTTL', queue) < least then return nil end

  if above(ARGV[arg + 3], heartbeat) then heartbeat = ARGV[arg + 3] end
  if above(ARGV[arg + 2], seen) then seen = ARGV[arg + 2] end
  call('HSET', waiters, runtime, place_text(number, heartbeat, window, seen, label))
  if ahead == 0 then recall(text, size, lease, holder, fence) end
  return {'queued', ends - millis - 1, ahead}
end

-- What is done if others wait for the lock, and if nobody does.
local CONTENDED_WAYS = {acquire = line_up, heartbeat = beat, release = hand_over, next = hand_over,
  try = turn_away}
local OTHER_WAYS = {acquire = begin_line, try = turn_away}

-- Runs one of them. A key of another type is found before anything is written, and left to the slow
-- path; any other failure is the answer.
local function quick(text, marks, at, arg)
  if not text then return nil end
  local way = (string.sub(text, 5, 5) == 'w' and CONTENDED_WAYS or OTHER_WAYS)[ARGV[arg]]
  if not way then return nil end
  local ok, answer = pcall(way, text, marks, at, arg)
  if ok then return answer end
  if not is_foreign(answer) then return {'refused', words(answer)} end
end
