-- release: end a lease, or keep the lock closed for exactly a given time.
--
-- KEYS  1 lease
-- ARGV  1 acquisition   2 fence   3 ms to keep it closed, or 0 to end it
-- Returns  {'released'}   {'kept', ms left}   {'gone'}
--
-- Why: acquisition and fence must match, so a late copy ends nobody else's lease. A kept lease is
-- neither ended nor kept again: a late copy of either changes nothing.
local row = redis.call('HMGET', KEYS[1], ARGV[1], 'fence', 'kept')
if not row[1] or row[2] ~= ARGV[2] then return {'gone'} end
if row[3] then return {'kept', redis.call('PTTL', KEYS[1])} end
local keep = tonumber(ARGV[3])

if keep == 0 then
  redis.call('DEL', KEYS[1])
  return {'released'}
end
redis.call('PEXPIRE', KEYS[1], keep)
redis.call('HSET', KEYS[1], ARGV[1], '0', 'kept', '1')
return {'kept', keep}
