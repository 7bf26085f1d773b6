-- hold: set the absolute number of holds of a lease and extend it. Never grants.
--
-- KEYS  1 lease
-- ARGV  1 acquisition   2 fence   3 holds   4 number of this change   5 ttl, ms
-- Returns  {'held', ms left}   {'gone'}
--
-- Why: the count is absolute and the change numbered, so a repeat or a late copy changes nothing,
-- and of two commands that overtake each other the later change stands. Before an answer without a
-- write comes a write of nothing (HDEL of a field that never exists), which a replica refuses: its
-- answers do not count. The fields of a lease stand in grant.lua.
local row = redis.call('HMGET', KEYS[1], ARGV[1], 'fence', 'hold', 'kept')
if not row[1] or row[2] ~= ARGV[2] or row[4] then
  redis.call('HDEL', KEYS[1], '')
  return {'gone'}
end
local left = redis.call('PTTL', KEYS[1])
if tonumber(ARGV[4]) <= (tonumber(row[3]) or 0) then
  redis.call('HDEL', KEYS[1], '')
  return {'held', math.max(left, 0)}
end
left = math.max(left, tonumber(ARGV[5]))

redis.call('PEXPIRE', KEYS[1], left)
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3], 'hold', ARGV[4])
return {'held', left}
