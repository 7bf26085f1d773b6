-- inspect: tell who holds a lock. Writes nothing.
--
-- KEYS  1 lease   2 fence counter
-- ARGV  none
-- Returns  {'free', counter or ''}   {'held', ms left, server time in µs, field, value, ...}
--          {'no-ttl'}   {'layout', version}
--
-- Why: one step, so that fields, time to live and clock belong together.
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  return {'free', redis.call('GET', KEYS[2]) or ''}
end
local version = redis.call('HGET', KEYS[1], 'v')
if version ~= '1' then return {'layout', version or ''} end
if left == -1 then return {'no-ttl'} end
local time = redis.call('TIME')
local answer = {'held', left, string.format('%.0f', time[1] * 1000000 + time[2])}
for _, part in ipairs(redis.call('HGETALL', KEYS[1])) do answer[#answer + 1] = part end
return answer
