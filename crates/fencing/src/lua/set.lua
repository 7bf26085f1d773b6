-- set: write a value behind the gate. Follows gate.lua.
--
-- KEYS  1 value   2 watermark
-- ARGV  1 new value   2 fence   3 lease   4 ttl of the watermark, ms (0: none)
-- Returns  {verdict}
--
-- Why: SET is what the gate has just run on the watermark, so it is not denied here.
redis.call('SET', KEYS[1], ARGV[1])
return {verdict}
