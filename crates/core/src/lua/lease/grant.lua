-- grant: the tokens of a grant, and the fields of a lock. Follows head.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the part that follows
--
-- Why: the tokens are minted in the same step as the lease, so no two grants share or reorder
-- tokens.
--
-- Formats. The fields of the hash `lease`, layout 2; tokens and times are decimal texts:
--   v        version of the layout, '2'
--   counter  last token of the last grant; a later layout must call it otherwise, because usual.lua
--            reads it without the version
--   expires  when the hash expires, ms; not if the counter has no TTL
--   more     '1' if there is any of holds, kept, waiting, marks: then usual.lua does not suffice
--   waiting  '1' while runtimes wait for the lock
--   marks    until when acquisitions are marked as withdrawn, ms
-- While somebody holds the lock (an expired lease leaves them until the next grant):
--   holder   acquisition
--   fence    first token of its block
--   end      when the lease expires, ms
--   since    time of the grant, µs
--   label    of the holder's runtime
--   holds    number of holds, if it ever was more than one
--   hold     number of the last change of holds
--   kept     '1' while the lock is only kept closed

-- The first token of a long block that ends now.
local early

-- Computes the block of a grant: first and last token, and 1 if the counter was behind the
-- watermark; nil and the answer that says why, if there can be none.
local function mint(counter, seen)
  if retention > 0 and counter and #counter == 16 and not string.find(counter, '%D') and counter < micros
    and (seen == '0' or #seen == 16 and seen < micros) then
    early = early or string.format('%.0f', now - 1023)
    if counter < early and (seen == '0' or seen <= counter) then return early, micros, 0 end
  end
  local counted, floor = tonumber(counter or 0), tonumber(seen)
  if not counted or counted % 1 ~= 0 or counted < 0 or counted >= 1e16 then
    return nil, {'counter', counter}
  end
  -- A watermark a day ahead of this clock is a mistake of some clock, not a memory of a grant.
  if floor > now + 86400000000 then floor = 0 end
  local behind = floor > counted and 1 or 0
  floor = math.max(floor, counted) + 1
  if floor > 9007199254740991 then return nil, {'exhausted', counter or ''} end
  if retention == 0 or floor > now then
    local token = string.format('%.0f', floor)
    return token, token, behind
  end
  -- Without a counter it is unknown which of the tokens before this one are taken.
  if counted == 0 then return micros, micros, behind end
  return string.format('%.0f', math.max(floor, now - 1023)), micros, behind
end

-- A place in `waiters`, see line.lua: number, heartbeat, time, claim window, watermark and label.
local PLACE = '^(%d+) (%d+) (%d+) (%d+) %d+ (%d+) (.*)$'
