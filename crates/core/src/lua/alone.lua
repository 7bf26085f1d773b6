-- alone: grant a lock at once that nobody holds or waits for, unless the asker was withdrawn.
-- Follows grant.lua; precedes queue.lua, ask.lua and acquire.lua.
--
-- KEYS  as acquire.lua
-- ARGV  as acquire.lua
-- Returns  {'granted', first, last, ms left, 0, 1 if the counter was behind}
--          {'counter', value}   {'exhausted', value}
--          or goes on to the script that follows, with `there`: how many of lease, queue and
--          withdrawal mark exist
--
-- Why: this is the usual case, and needs least.
lease, counter, retention = KEYS[1], KEYS[2], ARGV[4]
local ttl = tonumber(ARGV[2])
if not ttl or ttl <= 0 then return redis.error_reply('ERR a lease needs a ttl above 0 ms') end
local there = redis.call('EXISTS', lease, KEYS[3], KEYS[5])
if there == 0 then
  local block, trouble = mint(ARGV[3], false)
  if not block then return trouble end
  give(ARGV[1], block, ARGV[5], ARGV[2])
  return {'granted', block.first, block.last, ttl, 0, block.regressed}
end
