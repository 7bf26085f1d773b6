-- head: the settings of a store, and the time. Precedes all other parts, except preflight.lua, which
-- stands alone.
--
-- KEYS  those of the script that follows
-- ARGV  1 retention of the fence counter, ms (0: plain counter without TTL)
--       2 prefix of the channels of runtimes; on a node of a Cluster with '{<hash tag>}' behind it, see tell.lua
-- Returns  nothing: it goes on to the part that follows
--
-- Why: the time is read once, so that all commands of one script see the same moment. Times and
-- tokens stay texts where they can: of equal length they compare as numbers do, and to read or to
-- format a number costs as much as a command.
local retention, channels = tonumber(ARGV[1]), ARGV[2]
-- No text of a lock and no place is longer, in bytes: what is longer is foreign. `GETRANGE 0 TO` reads one byte
-- more, however much stands there.
-- ADR 0025
local LONGEST, TO = 512, '512'
local time = redis.call('TIME')
time[2] = string.sub('00000' .. time[2], -6)
-- The server's time in microseconds, and in milliseconds.
local micros, millis = time[1] .. time[2], time[1] .. string.sub(time[2], 1, 3)
local now = tonumber(micros)
local now_ms = (now - now % 1000) / 1000
-- From September 2001 until the year 2286 all times have 16 digits, so that texts compare as numbers do.
if #micros ~= 16 then
  return redis.error_reply("ERR the server's clock shows a time before September 2001")
end

-- What the present command has in common with others: ttl and claim window in ms, and the label of
-- its runtime, with the mark of a lock that may be kept idle.
local ttl, window, label
-- The first token of a long block that ends now.
local early
