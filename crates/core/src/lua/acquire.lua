-- acquire: grant a free lock to an acquisition, or queue it. Follows alone.lua and ask.lua.
--
-- KEYS  1 lease   2 fence counter   3 queue   4 waiters   5 withdrawal mark of this acquisition
-- ARGV  1 acquisition   2 ttl, ms   3 watermark: the largest token the asker has seen, or 0
--       4 retention of the counter, ms (0: plain counter without TTL)   5 label
--       6 prefix of the channels of runtimes   7 name
--       and if it waits: 8 number of the heartbeat   9 claim window, ms, at most the ttl
-- Returns  as `ask` in ask.lua
--
-- Why: a lease that expired is granted by the first acquire that comes, to the one that has waited
-- longest.
lease, counter, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
retention, channels, name = ARGV[4], ARGV[6], ARGV[7]
return ask({id = ARGV[1], ttl = ARGV[2], seen = ARGV[3], label = ARGV[5], heartbeat = ARGV[8],
  window = ARGV[9]}, KEYS[5])
