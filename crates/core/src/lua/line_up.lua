-- line_up: stand behind others in the queue of a taken lock. Follows alone.lua; precedes queue.lua.
--
-- KEYS  as acquire.lua
-- ARGV  as acquire.lua
-- Returns  {'queued', ms left, places ahead}
--          or goes on to the script that follows
--
-- Why: the usual case of a contended lock, as in hand_over.lua. It leaves the other cases to the
-- scripts that follow: the runtime has a place already, the queue is empty or long, or `waiters` does
-- not know the head. That key may be lost then, and would be made anew without a time to live. Every
-- decision and every format is as in ask.lua and queue.lua; `there` comes from alone.lua.
repeat
  -- Two of lease, queue and mark exist. Below, lease and queue are found: so there is no mark.
  if not ARGV[8] or there ~= 2 then break end
  local call, window, left = redis.call, tonumber(ARGV[9]) or 0, redis.call('PTTL', lease)
  if left <= 0 or window <= 0 then break end
  local row = redis.pcall('HMGET', lease, 'v', ARGV[1])
  if row[1] ~= '1' or row[2] then break end
  local line = redis.pcall('ZRANGE', KEYS[3], 0, 7, 'WITHSCORES')
  local runtime = string.sub(ARGV[1], 1, 36)
  if #line == 0 or #line == 16 then break end
  local texts = redis.pcall('HMGET', KEYS[4], runtime, line[1])
  if texts[1] or not texts[2] then break end
  if call('PTTL', KEYS[3]) < window then break end
  local time = call('TIME')

  call('ZADD', KEYS[3], line[#line] + 1, runtime)
  call('HSET', KEYS[4], runtime, string.sub(ARGV[1], 38) .. ' ' .. ARGV[8] .. ' '
    .. string.format('%.0f', time[1] * 1000000 + time[2]) .. ' ' .. ARGV[9] .. ' ' .. ARGV[2] .. ' '
    .. ARGV[3] .. ' ' .. ARGV[5])
  return {'queued', left, #line / 2}
until true
