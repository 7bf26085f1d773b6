-- preflight: run every command that the other scripts use, so that missing rights show at connect.
--
-- KEYS  1 a lease key of a lock that nobody uses   2 its fence counter   3 its queue
--       4 its waiters
-- ARGV  1 the runtime's own channel
-- Returns  'ok', or an error that names the first command that is refused
--
-- Why: a refusal in the middle of another script could leave a lease without a time to live. Here no
-- step can: a key is made together with its time to live, and HSET comes after PEXPIRE and DEL have
-- been proved. Nothing is tried after a refusal.
local refusal
local function need(command, ...)
  if refusal then return end
  local answer = redis.pcall(command, ...)
  if type(answer) == 'table' and answer.err then
    refusal = command .. ' is refused: ' .. answer.err
  end
end

need('SET', KEYS[2], '1', 'PX', 1000)
need('GET', KEYS[2])
need('PEXPIRE', KEYS[2], 1000)
need('PTTL', KEYS[2])
need('EXISTS', KEYS[2])
need('TIME')
need('DEL', KEYS[2])
need('HMGET', KEYS[1], 'v')
need('HGET', KEYS[1], 'v')
need('HGETALL', KEYS[1])
need('PEXPIRE', KEYS[1], 1000)
need('HSET', KEYS[1], 'v', '1')
need('PEXPIRE', KEYS[1], 1000)
need('DEL', KEYS[1])
need('HDEL', KEYS[1], '')
need('ZADD', KEYS[3], 'XX', 1, 'nobody')
need('PEXPIRE', KEYS[3], 1000)
need('ZADD', KEYS[3], 1, 'nobody')
need('PEXPIRE', KEYS[3], 1000)
need('ZRANGE', KEYS[3], 0, 0)
need('ZCARD', KEYS[3])
need('ZRANK', KEYS[3], 'nobody')
need('ZREM', KEYS[3], 'nobody')
need('PEXPIRE', KEYS[4], 1000)
need('HSET', KEYS[4], 'nobody', '')
need('PEXPIRE', KEYS[4], 1000)
need('HDEL', KEYS[4], 'nobody')
need('PUBLISH', ARGV[1], 'preflight')
if refusal then return redis.error_reply(refusal) end
return 'ok'
