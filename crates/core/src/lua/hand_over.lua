-- hand_over: pass the lock from one runtime to the next. Follows release.lua; precedes grant.lua.
--
-- KEYS  as release.lua
-- ARGV  as release.lua
-- Returns  {'released'}   {'next-queued', ms left, places ahead}
--          or goes on to pass_on.lua
--
-- Why: a contended lock does this all the time, and pass_on.lua takes half as long again. It leaves
-- the other cases to pass_on.lua: a counter that is missing, malformed or ahead of the clock, a head
-- that is dead or of the same runtime, a queue that is long or about to expire. Every decision and
-- every format is as in grant.lua and queue.lua; `matches` comes from release.lua.
repeat
  local call, runtime = redis.call, ARGV[7] and string.sub(ARGV[7], 1, 36)
  if not matches or ARGV[4] == '0' then break end
  local line = redis.pcall('ZRANGE', KEYS[3], 0, 7, 'WITHSCORES')
  local head, others = line[1], #line / 2 - 1
  if not head or head == runtime or others == 7 then break end
  local texts = redis.pcall('HMGET', KEYS[4], head, runtime or head)
  local number, heartbeat, heard, window, seen, label =
    string.match(texts[1] or '', '^(%d+) (%d+) (%d+) (%d+) %d+ (%d+) (.*)$')
  if not number or runtime and texts[2] then break end
  local counted = redis.pcall('GET', KEYS[2])
  if type(counted) ~= 'string' or not string.match(counted, '^[1-9]%d*$') then break end
  local time = call('TIME')
  local now = time[1] * 1000000 + time[2]
  local floor = math.max(tonumber(counted), tonumber(seen)) + 1
  if floor > now or now > 9007199254740991 or now > heard + window * 1000 then break end
  if runtime and (call('EXISTS', KEYS[5]) == 1
    or call('PTTL', KEYS[3]) < tonumber(ARGV[12])) then break end

  local contended = runtime or others > 0
  local last, id = string.format('%.0f', now), head .. ':' .. number
  local first = string.format('%.0f', math.max(floor, now - 1023))
  call('DEL', KEYS[1])
  call('SET', KEYS[2], last, 'PX', ARGV[4])
  -- Proves the right to set a time to live before there is a key.
  call('PEXPIRE', KEYS[1], window)
  call('HSET', KEYS[1], 'v', '1', id, '1', 'fence', first, 'last', last, 'hold', '0',
    'label', label, 'since', last)
  call('PEXPIRE', KEYS[1], window)
  if runtime then
    call('ZADD', KEYS[3], line[#line] + 1, runtime)
    call('HSET', KEYS[4], runtime, string.sub(ARGV[7], 38) .. ' ' .. ARGV[11] .. ' ' .. last .. ' '
      .. ARGV[12] .. ' ' .. ARGV[8] .. ' ' .. ARGV[9] .. ' ' .. ARGV[10])
  end
  call('ZREM', KEYS[3], head)
  call('HDEL', KEYS[4], head)
  redis.pcall('PUBLISH', ARGV[5] .. head, 'granted ' .. id .. ' ' .. first .. ' ' .. last .. ' '
    .. heartbeat .. ' ' .. window .. (contended and ' 1 ' or ' 0 ')
    .. (tonumber(seen) > tonumber(counted) and '1 ' or '0 ') .. ARGV[6])
  if not runtime then return {'released'} end
  return {'next-queued', tonumber(window), others}
until true
