-- gate: compare a stamp with the watermark of a resource, and move the watermark on.
--
-- KEYS  the last: watermark
-- ARGV  the last three: fence, lease, ttl of the watermark, ms (0: none)
-- Returns  {'stale', watermark}   {'corrupt', value, shortened}
--          or goes on to the script that follows, with `verdict` 'first', 'newer' or 'again'
--
-- Why: comparing and writing are one step, so no newer writer can come between. The watermark
-- moves before anything else is written, so a failure later lets no older writer in. It is written
-- even when it stays the same, so that a server that refuses writes does so here. Fences are exact
-- as Lua numbers, because they are below 2^53.
--
-- Format. A watermark is a stamp, two parts between one space: '<fence> <lease>'. The fence is a
-- decimal number without leading zeros, the lease '<runtime uuid>:<number>'.
local watermark = KEYS[#KEYS]
local fence, lease, ttl = ARGV[#ARGV - 2], ARGV[#ARGV - 1], tonumber(ARGV[#ARGV])
local stamp = fence .. ' ' .. lease

local verdict = 'first'
-- No watermark is longer than 256 bytes: of what is longer, no more is read.
local seen = redis.call('GETRANGE', watermark, '0', '256')
if seen ~= '' or redis.call('GET', watermark) then
  local highest = #seen <= 256 and string.match(seen, '^([1-9]%d*) %x+%-%x+%-%x+%-%x+%-%x+:%d+$')
  if not highest then return {'corrupt', string.sub(seen, 1, 100)} end
  if seen == stamp then
    verdict = 'again'
  elseif tonumber(fence) > tonumber(highest) then
    verdict = 'newer'
  else
    return {'stale', seen}
  end
end

if ttl > 0 then
  redis.call('SET', watermark, stamp, 'PX', ttl)
else
  redis.call('SET', watermark, stamp)
end
