-- renew: extend leases, each on its own. Never re-creates one. Follows head.lua, and the slow path, which stands in the
-- function `general` of scripts.rs.
--
-- KEYS  1..n leases
-- ARGV  1 and 2 as in head.lua; then acquisition, fence, ttl in ms: three for each lease
-- Returns  for each lease, in order: ms left, 0 if it is gone, -1 if its key is not a lock of this layout, -2 if the
--          data of the lock was lost
--
-- Why: one command renews many leases, and a key that another program overwrote spoils only its own
-- answer. Extending sets the greater of the present end and the new one. A usual lease is read and written by the
-- positions of grant.lua; everything else is left to the slow path.
local answers, call, sub, format = {}, redis.pcall, string.sub, string.format
local slow, has_written

for i, key in ipairs(KEYS) do
  local id, first, life = ARGV[3 * i], ARGV[3 * i + 1], tonumber(ARGV[3 * i + 2])
  local text, answer = call('GETRANGE', key, '0', TO), nil
  -- Not one that is kept, with a plain fence, or whose key is to live longer: without a retention, for ever.
  if retention > 0 and type(text) == 'string' and #text <= LONGEST and sub(text, 1, 4) == 'v4 x' and sub(text, 6, 6) == '-'
    and sub(text, 44, 60) == first .. ' ' and sub(text, 92, 92 + #id) == id .. ' ' then
    local left = (tonumber(sub(text, 78, 90)) or 0) - now_ms - 1
    local most = left > life and left or life
    local least = now_ms + 1 + (retention > most and retention or most)
    if left > 0 and sub(text, 30, 42) >= format('%d', least) then
      -- A write of nothing: a full server refuses no write that follows it in the same script.
      has_written = has_written or call('GETEX', key)
      local set = call('SET', key, sub(text, 1, 77) .. format('%d', now_ms + 1 + most) .. sub(text, 91), 'KEEPTTL')
      if set.ok then answer = most end
    end
  end
  if not answer then
    slow = slow or general()
    answer = slow(key, id, first, life)
    if type(answer) == 'table' then return answer end
  end
  answers[i] = answer
end
return answers
