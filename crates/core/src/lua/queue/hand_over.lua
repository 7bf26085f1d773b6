-- hand_over: the usual ways of a contended lock. Follows grant.lua; precedes usual.lua.
--
-- KEYS  as usual.lua
-- ARGV  as usual.lua
-- Returns  nothing: it goes on to the part that follows; each function returns the answer of its
--          command, or nothing, and then nothing was written
--
-- Why: a contended lock does this all the time, and the parts behind usual.lua take half as long
-- again. The other cases are left to them: a counter that is missing or ahead of the clock, a lease
-- with nested holds, marks, a head that is dead or of the same runtime, a queue that is long or about
-- to expire. Every decision and every format is as in row.lua, line.lua, ask.lua and pass_on.lua.

-- Ends a lease and grants the lock to the head of the queue.
local function hand_over(at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local row = call('HMGET', lease, 'holder', 'fence', 'end', 'counter', 'waiting', 'expires', 'hold',
    'kept', 'marks')
  if row[1] ~= ARGV[arg + 1] or row[2] ~= ARGV[arg + 2] or not row[5] or row[7] or row[8] or row[9]
    or not (row[4] and #row[4] == 16 and row[4] < micros and row[3] and millis < row[3]) then
    return nil
  end
  local runtime = ARGV[arg] == 'next' and string.sub(ARGV[arg + 3], 1, 36)
  local line = call('ZRANGE', queue, 0, 7, 'WITHSCORES')
  local head, others = line[1], #line / 2 - 1
  if not head or head == runtime or others == 7 then return nil end
  local texts = call('HMGET', waiters, head, runtime or head)
  local number, heartbeat, heard, window, seen, label = string.match(texts[1] or '', PLACE)
  if not number or runtime and texts[2] or now > heard + window * 1000 or retention < tonumber(window)
    or (row[6] or '') < after(retention) then
    return nil
  end
  if runtime and call('PTTL', queue) < tonumber(ARGV[arg + 8]) then return nil end
  local first, newest, behind = mint(row[4], seen)
  if newest ~= micros then return nil end

  local id = head .. ':' .. number
  -- The first write must be one that a full server accepts; then it refuses none of the others. A key
  -- must not become empty in between, or its time to live is lost.
  if others > 0 then call('HDEL', waiters, head) else call('HDEL', lease, '') end
  call('HSET', lease, 'counter', newest, 'holder', id, 'fence', first, 'end', after(window),
    'since', micros, 'label', label)
  if runtime then
    call('ZADD', queue, line[#line] + 1, runtime)
    call('HSET', waiters, runtime, string.sub(ARGV[arg + 3], 38) .. ' ' .. ARGV[arg + 7] .. ' '
      .. micros .. ' ' .. ARGV[arg + 8] .. ' ' .. ARGV[arg + 4] .. ' ' .. ARGV[arg + 5] .. ' '
      .. ARGV[arg + 6])
  end
  call('ZREM', queue, head)
  if others == 0 then
    call('HDEL', waiters, head)
    if not runtime then call('HDEL', lease, 'waiting', 'more') end
  end
  redis.pcall('PUBLISH', channels .. head, 'granted ' .. id .. ' ' .. first .. ' ' .. newest .. ' '
    .. heartbeat .. ' ' .. window .. ((runtime or others > 0) and ' 1 ' or ' 0 ') .. behind .. ' '
    .. string.sub(lease, #channels - 6, -8))
  if not runtime then return {'released'} end
  return {'next-queued', tonumber(window), others}
end

-- Stands behind others in the queue of a lock that is held.
local function line_up(at, arg)
  local call, lease, queue, waiters = redis.call, KEYS[4 * at - 3], KEYS[4 * at - 2], KEYS[4 * at - 1]
  local row = call('HMGET', lease, 'v', 'holder', 'end', 'waiting', 'marks', 'counter')
  local id, window = ARGV[arg + 1], tonumber(ARGV[arg + 6]) or 0
  if row[1] ~= '2' or not row[2] or row[2] == id or not (row[3] and millis < row[3]) or not row[4]
    or row[5] or not row[6] or window <= 0 then
    return nil
  end
  local line = call('ZRANGE', queue, 0, 7, 'WITHSCORES')
  local runtime = string.sub(id, 1, 36)
  if #line == 0 or #line == 16 then return nil end
  local texts = call('HMGET', waiters, runtime, line[1])
  if texts[1] or not texts[2] or call('PTTL', queue) < window then return nil end

  call('ZADD', queue, line[#line] + 1, runtime)
  call('HSET', waiters, runtime, string.sub(id, 38) .. ' ' .. ARGV[arg + 5] .. ' ' .. micros .. ' '
    .. ARGV[arg + 6] .. ' ' .. ARGV[arg + 2] .. ' ' .. ARGV[arg + 3] .. ' ' .. ARGV[arg + 4])
  return {'queued', row[3] - millis - 1, #line / 2}
end
