-- pass_on: end a lease and grant the lock to the next waiter. Follows release.lua and queue.lua.
--
-- KEYS  as release.lua
-- ARGV  as release.lua
-- Returns  {'released'}   {'gone'}   {'next-queued', ms left, places ahead}
--          {'next-granted', first, last, ms left, 1 if others wait, 1 if the counter was behind}
--
-- Why: the next acquisition queues in the same step, behind the others, so a turn costs one command.
-- The lease ends first, in whatever state queue and counter are. A waiter that cannot be granted the
-- lock stays queued, and its next heartbeat is answered with the reason. `matches` comes from
-- release.lua.
lease, counter, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
retention, channels, name = ARGV[4], ARGV[5], ARGV[6]
local following = ARGV[7] and {id = ARGV[7], ttl = ARGV[8], seen = ARGV[9], label = ARGV[10],
  heartbeat = ARGV[11], window = ARGV[12], runtime = string.sub(ARGV[7], 1, 36),
  number = string.sub(ARGV[7], 38)}

-- Reports what the next acquisition has, when the lease to be ended is gone.
local function report()
  local left = math.max(redis.call('PTTL', lease), 0)
  local row = redis.call('HMGET', lease, following.id, 'kept', 'fence', 'last')
  local line = unless_foreign(survey, following.runtime)
  if row[1] and not row[2] then
    local others = line and line.card - (line.rank and 1 or 0) or 0
    return {'next-granted', row[3], row[4], left, others > 0 and 1 or 0, 0}
  end
  if not (line and line.own and line.own.number == following.number) then return {'gone'} end
  return {'next-queued', left, line.rank}
end

-- Reads who gets the lock next. A next acquisition is ignored if it is withdrawn, or older than the
-- one that its runtime has queued.
local function plan()
  local line = survey(following and following.runtime or '')
  if following and (redis.call('EXISTS', KEYS[5]) == 1
    or line.own and above(line.own.number, following.number)) then
    following = nil
  end
  if following then hear(line, following) end
  choose(line, following)
  return line
end

if not matches then return report() end
local line = unless_foreign(plan)
redis.call('DEL', lease)
if not line then return {following and 'gone' or 'released'} end
local block, window = line.block, following and tonumber(following.window)
settle(line, following, window)
if line.head and not line.wins and block then tell_grant(line) end
if not following then return {'released'} end
if line.wins and block then
  return {'next-granted', block.first, block.last, window, block.contended, block.regressed}
end
return {'next-queued', block and line.place.window or 0, line.ahead}
