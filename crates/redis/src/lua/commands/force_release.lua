-- force_release: end the lease that was inspected and no other, move the fence on, and grant the
-- lock to the next waiter. Follows line.lua.
--
-- KEYS  1 lease   2 queue   3 waiters   4 withdrawn
-- ARGV  1 and 2 as in head.lua   3 acquisition   4 fence
-- Returns  {'ended', token above the ended lease's, or ''}   {'changed'}   {'layout', version}
--
-- Why: acquisition and fence are those that the operator saw, so a late copy ends no other lease.
-- The new token lets gates shut out the old holder at once; it is above the whole block of the
-- lease, and the next grant begins above it. The runtime of the holder, or of each reader, is told on its channel, in four
-- parts between single spaces, the name last:
--   force-released <acquisition> <first token> <name>
read(true, unpack(KEYS))
if lock.layout then return {'layout', lock.layout} end
if lock.holder ~= ARGV[3] or lock.fence ~= ARGV[4] or not remaining() then
  return {'changed'}
end

local token = math.max(tonumber(lock.fence), tonumber(lock.counter) or 9007199254740991) + 1
if retention > 0 or token >= FIRST_TIME then token = math.max(token, now) end
token = token <= 9007199254740991 and string.format('%d', token)
if token then lock.counter = token end
local line = unless_foreign(function()
  local line = survey('')
  if token then choose(line) end
  return line
end)
local readers = is_shared() and readers_now()
outlive(0)
clear()
if line then settle(line) end
for _, id in ipairs(readers or {ARGV[3]}) do
  tell(string.sub(id, 1, 36), table.concat({'force-released', id, ARGV[4], name_of(lock.lease)}, ' '))
end
if line and line.block then tell_grant(line) end
return {'ended', token or ''}
