-- renew: extend leases, each on its own. Never re-creates one.
--
-- KEYS  1..n leases
-- ARGV  acquisition, fence, ttl in ms: three for each lease
-- Returns  for each lease, in order: ms left, 0 if it is gone, -1 if its key is not a lease
--
-- Why: one command renews many leases, and a key that another program overwrote spoils only its own
-- answer. Extending sets the greater of the present time to live and the new one. Before "gone" comes
-- a write of nothing (HDEL of a field that never exists), which a replica refuses: its answers end no
-- lease.
local answers, proved = {}, false
for i, lease in ipairs(KEYS) do
  local id, fence, ttl = ARGV[3 * i - 2], ARGV[3 * i - 1], tonumber(ARGV[3 * i])
  local row = redis.pcall('HMGET', lease, id, 'fence', 'kept')
  if row.err then
    -- Only a key of another type is this lease's own trouble; any other error concerns them all.
    if not string.find(row.err, 'WRONGTYPE', 1, true) then return row end
    answers[i] = -1
  elseif not row[1] or row[2] ~= fence or row[3] then
    if not proved then redis.call('HDEL', lease, '') end
    answers[i], proved = 0, true
  else
    local left = math.max(redis.call('PTTL', lease), ttl)
    redis.call('PEXPIRE', lease, left)
    answers[i] = left
  end
end
return answers
