-- withdraw: take an acquisition back, whatever came of it.
--
-- KEYS  1 lease   2 withdrawal mark of this acquisition
-- ARGV  1 acquisition   2 life of the mark, ms
-- Returns  {'withdrawn', 1 if a grant was ended, else 0}
--
-- Why: the acquire may be granted, refused, lost, or still on its way on a connection that was
-- given up. The mark keeps such a late copy from coming back as a lease that nobody knows of. It
-- is written last and through pcall: a full server refuses it, but must not refuse the ending.
local row = redis.call('HMGET', KEYS[1], ARGV[1], 'kept')
local ended = 0
if row[1] and not row[2] then
  redis.call('DEL', KEYS[1])
  ended = 1
end
redis.pcall('SET', KEYS[2], '1', 'PX', ARGV[2])
return {'withdrawn', ended}
