-- preflight: run every command that the other scripts use, so that missing rights show at connect.
--
-- KEYS  1 a lease key of a lock that nobody uses   2 its fence counter
-- ARGV  1 the runtime's own channel
-- Returns  'ok', or the refusal of the first command that is not allowed
--
-- Why: a refusal in the middle of another script could leave a lease without TTL. Here the order
-- is such that no step can: a key is made together with its TTL, and HSET comes after PEXPIRE and
-- DEL have been proved.
redis.call('SET', KEYS[2], '1', 'PX', 1000)
redis.call('GET', KEYS[2])
redis.call('PEXPIRE', KEYS[2], 1000)
redis.call('PTTL', KEYS[2])
redis.call('EXISTS', KEYS[2])
redis.call('TIME')
redis.call('DEL', KEYS[2])
redis.call('HMGET', KEYS[1], 'v')
redis.call('HGET', KEYS[1], 'v')
redis.call('HGETALL', KEYS[1])
redis.call('PEXPIRE', KEYS[1], 1000)
redis.call('HSET', KEYS[1], 'v', '1')
redis.call('PEXPIRE', KEYS[1], 1000)
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[1], 'preflight')
return 'ok'
