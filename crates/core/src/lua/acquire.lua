-- acquire: grant a free lock to an acquisition, or tell how long the present lease has left.
--
-- KEYS  1 lease   2 fence counter   3 withdrawal mark of this acquisition
-- ARGV  1 acquisition   2 ttl, ms   3 watermark: the largest token the asker has seen, or 0
--       4 retention of the counter, ms (0: plain counter without TTL)   5 label
-- Returns  {'granted', first, last, ms left, 1 if the counter was behind the watermark, else 0}
--          {'busy', ms left}   {'withdrawn'}
--          {'no-ttl'}   {'layout', version}   {'counter', value}   {'exhausted', value}
--          or an error for a ttl that is none
--
-- Why: the token is minted in the same step as the lease, so no two grants can share or reorder
-- theirs. A repeat of a lost reply gets the same grant. Everything is read and checked before the
-- first write. That is the counter's: a full server looks only at the first write of a script, and
-- would not refuse PEXPIRE; and a token that is skipped harms nobody. PEXPIRE on the missing key
-- then proves the right to set a TTL before there is a key.
local lease, counter, mark = KEYS[1], KEYS[2], KEYS[3]
local id, ttl, seen, retention = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if not ttl or ttl <= 0 then return redis.error_reply('ERR a lease needs a ttl above 0 ms') end

local left = redis.call('PTTL', lease)
if left ~= -2 then
  local row = redis.call('HMGET', lease, 'v', id, 'fence', 'last', 'kept')
  if row[1] ~= '1' then return {'layout', row[1] or ''} end
  if left == -1 then return {'no-ttl'} end
  if row[2] and not row[5] then return {'granted', row[3], row[4], left, 0} end
  return {'busy', left}
end
if redis.call('EXISTS', mark) == 1 then return {'withdrawn'} end

local last = 0
local counted = redis.call('GET', counter)
if counted then
  if not string.match(counted, '^%d+$') or #counted > 16 then return {'counter', counted} end
  last = tonumber(counted)
end
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- A watermark a day ahead of this clock is a mistake of some clock, not a memory of a grant.
if seen > now + 86400000000 then seen = 0 end
local fence = math.max(last, seen) + 1
if retention > 0 then fence = math.max(fence, now) end
if fence > 9007199254740991 then return {'exhausted', counted or ''} end
local token = string.format('%.0f', fence)

if retention > 0 then
  redis.call('SET', counter, token, 'PX', retention)
else
  redis.call('SET', counter, token)
end
redis.call('PEXPIRE', lease, ttl)
redis.call('HSET', lease, 'v', '1', id, '1', 'fence', token, 'last', token, 'hold', '0',
  'label', ARGV[5], 'since', string.format('%.0f', now))
redis.call('PEXPIRE', lease, ttl)
return {'granted', token, token, ttl, seen > last and 1 or 0}
