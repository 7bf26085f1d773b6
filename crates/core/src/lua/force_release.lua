-- force_release: end the lease that was inspected and no other, move the fence on, and grant the
-- lock to the next waiter. Follows queue.lua.
--
-- KEYS  1 lease   2 fence counter   3 queue   4 waiters
-- ARGV  1 acquisition   2 fence   3 retention of the counter, ms (0: plain counter without TTL)
--       4 prefix of the channels of runtimes   5 name
-- Returns  {'ended', token above the ended lease's, or ''}   {'changed'}
--
-- Why: acquisition and fence are those that the operator saw, so a late copy ends no other lease.
-- The new token lets gates shut out the old holder at once; it is above the whole block of the
-- lease, and the next grant begins above it. Before "changed" comes a write of nothing (HDEL of a
-- field that never exists), which a replica refuses: its answers do not count. The holder's runtime
-- is told on its channel, in four parts between single spaces, the name last:
--   force-released <acquisition> <first token> <name>
lease, counter, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
retention, channels, name = ARGV[3], ARGV[4], ARGV[5]
local row = redis.call('HMGET', lease, ARGV[1], 'fence', 'last')
if not row[1] or row[2] ~= ARGV[2] then
  redis.call('HDEL', lease, '')
  return {'changed'}
end

local counted = redis.pcall('GET', counter)
local token
if type(counted) ~= 'table' then
  local ended = math.max(tonumber(row[2]), tonumber(row[3] or '0') or 0)
  local fence = math.max(tonumber(counted or '0') or 9007199254740991, ended) + 1
  if retention ~= '0' then fence = math.max(fence, clock()) end
  if fence <= 9007199254740991 then token = string.format('%.0f', fence) end
end

local function plan()
  local line = survey('')
  if token then choose(line, nil, token) end
  return line
end

local line = unless_foreign(plan)
redis.call('DEL', lease)
if line then settle(line) end
if token and not (line and line.block) then
  if retention ~= '0' then
    redis.call('SET', counter, token, 'PX', retention)
  else
    redis.call('SET', counter, token)
  end
end
tell(string.sub(ARGV[1], 1, 36), table.concat({'force-released', ARGV[1], ARGV[2], name}, ' '))
if line and line.block then tell_grant(line) end
return {'ended', token or ''}
