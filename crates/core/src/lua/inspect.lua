-- inspect: return who holds a lock, and who waits for it. Changes nothing. Follows queue.lua.
--
-- KEYS  1 lease   2 fence counter   3 queue   4 waiters
-- ARGV  none
-- Returns  {'free', counter or ''}
--          {'held', ms left, server time in µs, waiters, field of the lease, value, ...}, where
--          waiters are {acquisition, heard at in µs, label} for one after the other, in one flat list
--          {'no-ttl'}   {'layout', version}
--
-- Why: one step, so that fields, time to live, queue and clock belong together. It returns the first
-- 128 live waiters; dead places are skipped, not removed. Before "free" comes a write of nothing
-- (HDEL of a field that never exists), which a replica refuses: it may lack a lease that the master
-- has. The fields of a lease stand in grant.lua.
lease, counter, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local left = redis.call('PTTL', lease)
if left == -2 then
  redis.call('HDEL', lease, '')
  return {'free', redis.call('GET', counter) or ''}
end
local version = redis.call('HGET', lease, 'v')
if version ~= '1' then return {'layout', version or ''} end
if left == -1 then return {'no-ttl'} end

local waiting, from = {}, 0
repeat
  local page = redis.call('ZRANGE', queue, from, from + 127)
  for _, runtime in ipairs(page) do
    local place = place_of(redis.call('HGET', waiters, runtime))
    if #waiting < 3 * 128 and is_live(place) then
      waiting[#waiting + 1] = runtime .. ':' .. place.number
      waiting[#waiting + 1] = string.format('%.0f', place.heard)
      waiting[#waiting + 1] = place.label
    end
  end
  from = from + 128
until #page < 128 or #waiting == 3 * 128

local answer = {'held', left, string.format('%.0f', clock()), waiting}
for _, part in ipairs(redis.call('HGETALL', lease)) do answer[#answer + 1] = part end
return answer
