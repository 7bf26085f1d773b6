-- release: end a lease and grant the lock to the next waiter, or keep it closed for exactly a
-- given time. Precedes grant.lua, queue.lua and pass_on.lua.
--
-- KEYS  1 lease   2 fence counter   3 queue   4 waiters
--       and with a next acquisition: 5 its withdrawal mark
-- ARGV  1 acquisition   2 fence   3 ms to keep it closed, or 0 to end it
--       4 retention of the counter, ms (0: plain counter without TTL)
--       5 prefix of the channels of runtimes   6 name
--       and with a next acquisition of the same runtime, which is to queue behind the others:
--       7 acquisition   8 ttl, ms   9 watermark   10 label   11 number of its heartbeat
--       12 claim window, ms, at most the ttl
-- Returns  {'released'}   {'kept', ms left}   {'gone'}
--          or goes on to hand_over.lua and pass_on.lua, with `matches`: whether the lease is the
--          one to be released
--
-- Why: acquisition and fence must match, so a late copy ends no other lease, and only reports the
-- state of the next acquisition. A kept lease is neither ended nor kept again. When nobody waits,
-- queue and counter are not read. Before an answer without a write comes a write of nothing
-- (HDEL of a field that never exists), which a replica refuses: its answers do not count.
local row = redis.call('HMGET', KEYS[1], ARGV[1], 'fence', 'kept')
local matches = row[1] and row[2] == ARGV[2]
if not matches or row[3] then redis.call('HDEL', KEYS[1], '') end
if matches then
  if row[3] then return {'kept', redis.call('PTTL', KEYS[1])} end
  local keep = tonumber(ARGV[3])
  if keep > 0 then
    redis.call('PEXPIRE', KEYS[1], keep)
    redis.call('HSET', KEYS[1], ARGV[1], '0', 'kept', '1')
    return {'kept', keep}
  end
end
if not ARGV[7] then
  if not matches then return {'gone'} end
  if redis.call('EXISTS', KEYS[3]) == 0 then
    redis.call('DEL', KEYS[1])
    return {'released'}
  end
end
