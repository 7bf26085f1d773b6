-- extend: the slow path of a renewal. Follows row.lua.
--
-- KEYS  as renew.lua
-- ARGV  as renew.lua
-- Returns  nothing: it goes on to renew.lua; `extend` returns the answer about a lease, or the error of the whole call
--
-- Why: it serves every lease, and is the one that has to be right; the fast path is a copy for what occurs all the time.
local function extend(key, id, first, life)
  local ok, failure = pcall(read, true, key)
  if not ok then
    -- Only a key of another type is this lease's own trouble; any other error concerns them all.
    return is_foreign(failure) and -1 or redis.error_reply(words(failure))
  end
  local left = remaining_of(id, first)
  if not left then return lock.layout and -1 or is_lost(first) and -2 or 0 end
  left = math.max(left, life)
  if is_shared() then
    stretch(id, left)
  else
    outlive(left)
    lock.ends = after(left)
  end
  save()
  return left
end
