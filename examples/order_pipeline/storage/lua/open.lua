-- open: join the open run, or begin one.
--
-- KEYS  1 open run
-- ARGV  1 id of the run to begin   2 fingerprint of the order file
--       3 how long a run lives, ms   4 how much of that must be left to join, ms
-- Returns  {id, end of the run, Unix ms}
--
-- Why: all keys of a run end at the same instant, so none outlives another that it belongs to.
local open = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local row = redis.call('HMGET', open, 'id', 'orders', 'until')
if row[1] and row[2] == ARGV[2] and row[3] - now > tonumber(ARGV[4]) then
  return {row[1], row[3]}
end
local ends = string.format('%.0f', now + ARGV[3])
redis.call('DEL', open)
redis.call('HSET', open, 'id', ARGV[1], 'orders', ARGV[2], 'until', ends)
redis.call('PEXPIREAT', open, ends)
return {ARGV[1], ends}
