-- preflight: run every command that the other scripts use, so that missing rights show at connect.
--
-- KEYS  1 lease of a lock that nobody uses   2 its queue   3 its waiters   4 its withdrawn
-- ARGV  1 the runtime's own channel
-- Returns  'ok', or an error that names the first command that is refused
--
-- Why: a refusal in the middle of another script would have to be undone. Here it leaves nothing: a
-- key is deleted, or has its time to live, before the next command is tried. Nothing is tried after a
-- refusal. SET is the first write: a full server refuses no later one of a script.
local refusal
local function need(command, ...)
  if refusal then return end
  local answer = redis.pcall(command, ...)
  if type(answer) == 'table' and answer.err then
    refusal = command .. ' is refused: ' .. answer.err
  end
end

need('TIME')
need('SET', KEYS[1], 'nobody', 'PX', 1000)
need('DEL', unpack(KEYS))
need('EXISTS', unpack(KEYS))
need('GETEX', KEYS[1])
need('GETRANGE', KEYS[1], 0, 0)
need('PTTL', KEYS[1])
need('PEXPIRE', KEYS[1], 1000)
need('ZADD', KEYS[2], 1, 'nobody')
need('PEXPIRE', KEYS[2], 1000)
need('ZRANGE', KEYS[2], 0, 0)
need('ZCARD', KEYS[2])
need('ZRANK', KEYS[2], 'nobody')
need('ZSCORE', KEYS[2], 'nobody')
need('ZCOUNT', KEYS[2], '-inf', 0)
need('ZREMRANGEBYRANK', KEYS[2], 1, 1)
need('ZREM', KEYS[2], 'nobody')
need('HSET', KEYS[3], 'nobody', '')
need('PEXPIRE', KEYS[3], 1000)
need('HGET', KEYS[3], 'nobody')
need('HSTRLEN', KEYS[3], 'nobody')
need('HDEL', KEYS[3], 'nobody')
redis.pcall('DEL', KEYS[1], KEYS[2], KEYS[3])
need('PUBLISH', ARGV[1], 'preflight')
if refusal then return redis.error_reply(refusal) end
return 'ok'
