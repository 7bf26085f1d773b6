-- withdraw: take an acquisition back: its place, or its grant, which the next waiter gets. Follows
-- queue.lua.
--
-- KEYS  1 lease   2 fence counter   3 queue   4 waiters   5 withdrawal mark of this acquisition
-- ARGV  1 acquisition   2 life of the mark, ms
--       3 retention of the counter, ms (0: plain counter without TTL)
--       4 prefix of the channels of runtimes   5 name
-- Returns  {'withdrawn', 1 if a grant was ended, else 0}
--
-- Why: the acquire may be granted, queued, refused, lost, or still in flight on a connection that
-- was given up. The mark keeps such a late copy from becoming a lease that nobody knows of. It is
-- written last and through pcall: a full server refuses it, but must not refuse to end the lease.
-- Any other refusal is returned, so that the withdrawal is sent again. When there was nothing to end,
-- the mark is the first write, which a replica refuses.
lease, counter, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
retention, channels, name = ARGV[3], ARGV[4], ARGV[5]
local row = redis.call('HMGET', lease, ARGV[1], 'kept')
local ended = row[1] and not row[2]

local function plan()
  local line = survey(string.sub(ARGV[1], 1, 36))
  if line.own and line.own.number == string.sub(ARGV[1], 38) then
    line.skip, line.rank, line.own = line.runtime, nil, nil
    line.dead[1] = line.runtime
  end
  if ended then choose(line) end
  return line
end

local line = redis.call('EXISTS', queue) == 1 and unless_foreign(plan)
if ended then redis.call('DEL', lease) end
if line then settle(line) end
local marked = redis.pcall('SET', KEYS[5], '1', 'PX', ARGV[2])
if line and line.block then tell_grant(line) end
if marked.err and not string.find(marked.err, 'OOM', 1, true) then return marked end
return {'withdrawn', ended and 1 or 0}
