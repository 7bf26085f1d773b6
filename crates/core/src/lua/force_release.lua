-- force_release: end the lease that was inspected and no other, and move the fence on.
--
-- KEYS  1 lease   2 fence counter
-- ARGV  1 acquisition   2 fence   3 retention of the counter, ms (0: plain counter without TTL)
--       4 channel of the holder's runtime   5 message for it
-- Returns  {'ended', token above the ended lease's, or ''}   {'changed'}
--
-- Why: acquisition and fence are those that the operator saw, so a late copy ends nobody else.
-- The new token lets gates shut out the old holder at once. PUBLISH comes last and through
-- pcall: it can be denied by rights after the writes.
local row = redis.call('HMGET', KEYS[1], ARGV[1], 'fence')
if not row[1] or row[2] ~= ARGV[2] then return {'changed'} end
local counted = redis.pcall('GET', KEYS[2])
local retention = tonumber(ARGV[3])
local token = ''
if type(counted) ~= 'table' then
  local fence = math.max(tonumber(counted or '0') or 9007199254740991, tonumber(row[2])) + 1
  if retention > 0 then
    local time = redis.call('TIME')
    fence = math.max(fence, time[1] * 1000000 + time[2])
  end
  if fence <= 9007199254740991 then token = string.format('%.0f', fence) end
end

redis.call('DEL', KEYS[1])
if token ~= '' then
  if retention > 0 then
    redis.call('SET', KEYS[2], token, 'PX', retention)
  else
    redis.call('SET', KEYS[2], token)
  end
end
redis.pcall('PUBLISH', ARGV[4], ARGV[5])
return {'ended', token}
