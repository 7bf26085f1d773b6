-- grant: mint the tokens of a grant and write it. Precedes queue.lua and all scripts that grant.
--
-- KEYS  those of the script that follows, which puts them into `lease`, `counter`, `queue` and
--       `waiters`
-- ARGV  those of the script that follows, which fills in `name`, `channels` and `retention`
-- Returns  nothing: it goes on to the script that follows
--
-- Why: the tokens are minted in the same step as the lease, so no two grants share or reorder
-- tokens. The counter is written first: a full server checks only the first write of a script, and
-- would not refuse PEXPIRE; a skipped token harms nobody. PEXPIRE on the missing key then proves the
-- right to set a time to live before there is a key. Numbers stay the texts they came as: formatting
-- one costs as much as a command.
--
-- Formats. `lease` is a hash: 'v' layout version, '1'; <acquisition> number of holds; 'fence' first
-- and 'last' last token of the block; 'hold' number of the last change of holds; 'label' of the
-- holder's runtime; 'since' time of the grant, µs; and 'kept' '1' while it is only kept closed.
-- `counter` is the last token. Tokens and times in µs are decimal texts, '%.0f'.
local lease, counter, queue, waiters, name, channels, retention, now

local function clock()
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  return now
end

-- Computes the block of a grant; nil and the answer that says why, if there can be none.
local function mint(watermark, contended, counted)
  if counted == nil then counted = redis.pcall('GET', counter) end
  if type(counted) == 'table' then return nil, counted end
  if counted and (not string.match(counted, '^%d+$') or #counted > 16) then
    return nil, {'counter', counted}
  end
  local last, seen = tonumber(counted or 0), tonumber(watermark)
  -- A watermark a day ahead of this clock is a mistake of some clock, not a memory of a grant.
  if seen > clock() + 86400000000 then seen = 0 end
  local regressed = seen > last and 1 or 0
  -- Without a counter it is unknown which of the tokens before this one are taken.
  local length = last == 0 and 1 or 1024
  local first = math.max(last, seen) + 1
  last = first
  if retention ~= '0' then
    last = math.max(first, now)
    first = math.max(first, last - length + 1)
  end
  if last > 9007199254740991 then return nil, {'exhausted', counted or ''} end
  return {first = string.format('%.0f', first), last = string.format('%.0f', last),
    contended = contended and 1 or 0, regressed = regressed}
end

-- Writes a grant.
local function give(id, block, label, life)
  if retention ~= '0' then
    redis.call('SET', counter, block.last, 'PX', retention)
  else
    redis.call('SET', counter, block.last)
  end
  redis.call('PEXPIRE', lease, life)
  redis.call('HSET', lease, 'v', '1', id, '1', 'fence', block.first, 'last', block.last,
    'hold', '0', 'label', label, 'since', string.format('%.0f', now))
  redis.call('PEXPIRE', lease, life)
end
