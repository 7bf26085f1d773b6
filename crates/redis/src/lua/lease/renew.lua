-- renew: extend leases, each on its own. Never re-creates one. Follows row.lua.
--
-- KEYS  1..n leases
-- ARGV  1 and 2 as in head.lua; then acquisition, fence, ttl in ms: three for each lease
-- Returns  for each lease, in order: ms left, 0 if it is gone, -1 if its key is not a lock of this layout, -2 if the
--          data of the lock was lost
--
-- Why: one command renews many leases, and a key that another program overwrote spoils only its own
-- answer. Extending sets the greater of the present end and the new one.
local answers = {}
for i, key in ipairs(KEYS) do
  local ok, failure = pcall(read, true, key)
  if not ok then
    -- Only a key of another type is this lease's own trouble; any other error concerns them all.
    if not is_foreign(failure) then return redis.error_reply(words(failure)) end
    answers[i] = -1
  else
    local left = remaining_of(ARGV[3 * i], ARGV[3 * i + 1])
    if left then
      left = math.max(left, tonumber(ARGV[3 * i + 2]))
      outlive(left)
      lock.ends = after(left)
      save()
    end
    answers[i] = left or lock.layout and -1 or is_lost(ARGV[3 * i + 1]) and -2 or 0
  end
end
return answers
