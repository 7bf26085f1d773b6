-- grant: the tokens of a grant, the text of a lock, and failures. Follows head.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the part that follows
--
-- Why: the tokens are minted in the same step as the lease, so no two grants share or reorder
-- tokens.
--
-- ADR 0023
-- Formats. The string `lease`, layout 4, has parts between single spaces. Tokens are decimal with 16 digits, times in µs
-- with 16 and in ms with 13, with zeros before them if need be. So each part that scripts look at stands at one place:
--   at 1   'v4', the layout
--   at 4   the kind: 'x', a writer holds it, or nobody; 's', readers share it; and seven flags, each a letter or '-'.
--          usual.lua serves locks of kind 'x' without `w`, `k`, `h` and `r`, hand_over.lua those with `w` as well, the
--          slow path all:
--            w   runtimes wait for the lock        k   it is only kept closed
--            h   holds stand at the end            m   marks stand at the end
--            r   readers are or were among those who wait
--            two that have no meaning yet
--   at 13  counter   the last token of the last grant
--   at 30  expires   when the key expires, ms; 0 if it has no time to live
-- and while somebody holds the lock (an expired lease stays until the next grant):
--   at 44  fence     first token of its block; of readers, the only one
--   at 61  since     time of the grant, µs
--   at 78  end       when the lease expires, ms; of readers, that of the last one, see row.lua
--   at 92  acquisition   of the holder, with its word; of readers, the one that opened their lease
--   label  of its runtime; it may have spaces. A '~' before it: the runtime may keep the lock idle, and is
--          told when another one waits
-- and at the end, each behind a space:
--   holds  how many, 10 digits, if it ever was more than one; '/'; the number of their last change, 20 digits
--   marks  until when acquisitions are marked as withdrawn, ms
-- Layouts 1 and 2 were hashes, with their version in the field `v`; layout 3 was a text that began with the counter, or
-- with 'w' or 'k' before it. Layout 5 is that of a quorum. The text of each later one begins with 'v' and its version, and
-- then a space, with or without letters before that.

-- The words of a failure.
local function words(failure)
  return type(failure) == 'table' and failure.err or tostring(failure)
end

-- Whether a key is of another type: that is found before anything is written.
local function is_foreign(failure)
  return string.find(words(failure), 'WRONGTYPE', 1, true)
end

-- The moment so many milliseconds from now. It is counted from the next whole millisecond, and over
-- when the present one is not below it, so that nothing ends early.
local function after(life)
  return string.format('%d', now_ms + 1 + life)
end

-- A counter from here on is a time in µs, since September 2001. Then a process with retention 0 goes by the clock, too:
-- otherwise its blocks of 1024 would run ahead of it.
local FIRST_TIME = 1e15

-- Computes the block of a grant: first and last token, and 1 if the counter was behind the
-- watermark; nil and the answer that says why, if there can be none. A plain counter gives a single token,
-- unless others wait (`waits`): then the turn may serve as many tasks as any other.
-- ADR 0007
local function mint(counter, seen, waits)
  if retention > 0 and counter and #counter == 16 and counter < micros
    and (seen == '0' or #seen == 16 and seen < micros) then
    early = early or string.format('%d', now - 1023)
    if counter < early and (seen == '0' or seen <= counter) then return early, micros, 0 end
  end
  local counted, floor = tonumber(counter or 0), tonumber(seen)
  -- A watermark a day ahead of this clock is a mistake of some clock, not a memory of a grant.
  if floor > now + 86400000000 then floor = 0 end
  local behind = floor > counted and 1 or 0
  floor = math.max(floor, counted) + 1
  if floor > 9007199254740991 then return nil, {'exhausted', counter or ''} end
  local token = string.format('%d', floor)
  if retention == 0 and floor < FIRST_TIME then
    return token, waits and counted > 0 and string.format('%d', floor + 1023) or token, behind
  end
  if floor > now then return token, token, behind end
  -- Without a counter it is unknown which of the tokens before this one are taken.
  if counted == 0 then return micros, micros, behind end
  return string.format('%d', math.max(floor, now - 1023)), micros, behind
end

-- A field of a hash; nil if it is not there. One that is too long for ours is neither read nor replaced: to free it
-- takes a server as long as to read it.
local function field(key, name)
  local size = redis.call('HSTRLEN', key, name)
  if size > LONGEST then error('WRONGTYPE the field is not that of a lock', 0) end
  return size > 0 and redis.call('HGET', key, name) or nil
end

-- Whether a number is above another; as texts, because some are too large for Lua. Behind the numbers of
-- acquisitions are words of equal length.
local function above(a, b)
  return #a > #b or #a == #b and a > b
end

-- A place in `waiters`, see line.lua: number with word, heartbeat, time, claim window, watermark and label.
local PLACE = '^(%S+) (%d+) (%d+) (%d+) (%d+) (.*)$'

local function place_text(number, heartbeat, window, seen, label)
  return number .. ' ' .. heartbeat .. ' ' .. micros .. ' ' .. window .. ' ' .. seen .. ' ' .. label
end

-- A number without the zeros before it.
local function bare(number)
  return string.match(number, '^0*(%d+)$')
end

-- Texts of a lock that is held once and not kept, without its marks: with and without others that wait. What
-- they find: counter, expires, fence, since, end, acquisition.
local CONTENDED = '^v4 xw%-%-%-%-%-%- (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) '
local UNCONTENDED = '^v4 x%-%-%-%-%-%-%- (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) '

-- How a text begins with or without others that wait, and with or without marks.
local function beginning(waits, marks)
  return (waits and 'v4 xw--' or 'v4 x---') .. (marks == '' and '-' or 'm') .. '---'
end
