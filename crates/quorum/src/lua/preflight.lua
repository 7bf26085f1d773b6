-- preflight: run every command that the scripts of a quorum use, so that missing rights show at connect.
--
-- KEYS  1 lease of a lock that nobody uses   2 its waiters   3 its withdrawn
-- ARGV  1 the runtime's own channel
-- Returns  'ok', or an error that names the first command that is refused
--
-- Why: as commands/preflight.lua.
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
need('GETRANGE', KEYS[1], 0, 0)
need('PTTL', KEYS[1])
need('HSET', KEYS[2], 'nobody', '')
need('PEXPIRE', KEYS[2], 1000)
need('HGET', KEYS[2], 'nobody')
need('HSTRLEN', KEYS[2], 'nobody')
need('HGETALL', KEYS[2])
need('HLEN', KEYS[2])
need('HEXISTS', KEYS[2], 'nobody')
need('HDEL', KEYS[2], 'nobody')
need('ZADD', KEYS[3], 1, 'nobody')
need('PEXPIRE', KEYS[3], 1000)
need('ZSCORE', KEYS[3], 'nobody')
need('ZCOUNT', KEYS[3], '-inf', 0)
need('ZREMRANGEBYRANK', KEYS[3], 1, 1)
redis.pcall('DEL', unpack(KEYS))
need('PUBLISH', ARGV[1], 'preflight')
if refusal then return redis.error_reply(refusal) end
return 'ok'
