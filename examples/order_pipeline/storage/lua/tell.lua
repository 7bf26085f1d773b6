-- tell: keep what a copy of the program tells of itself.
--
-- KEYS  1 copies
-- ARGV  1 copy   2 what it tells   3 end of the run, Unix ms
-- Returns  'told'
--
-- Why: what one copy tells replaces what it told before, and ends with the run.
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIREAT', KEYS[1], ARGV[3])
return 'told'
