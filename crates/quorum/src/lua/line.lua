-- line: who waits for a lock, and whose turn it is. Follows row.lua.
--
-- KEYS  as head.lua
-- ARGV  as head.lua
-- Returns  nothing: it goes on to ask.lua
--
-- Why: a node alone cannot grant, so it tells the oldest one that waits, and keeps the turn for it for a moment.

-- How long a runtime whose turn it is may take before others are served, ms.
-- ADR 0039
local WINDOW = 50
-- The most runtimes that are remembered for a lock.
local CROWD = 64

-- Those who wait, the oldest first, and whose turn it is.
local function line()
  local all, turn = {}, nil
  if not lock.waiting then return all end
  -- More than the crowd and its turn, somebody else wrote.
  local size = call('HLEN', lock.waiters)
  if type(size) ~= 'number' or size > CROWD + 1 then return all end
  local found = call('HGETALL', lock.waiters)
  if type(found) ~= 'table' or found.err then return all end
  for i = 1, #found, 2 do
    local first, second = match(sub(found[i + 1], 1, LONGEST), '^(%S+) (%d+)')
    if found[i] == '!' then
      turn = {acq = first, ends = tonumber(second)}
    elseif second and tonumber(second) > now_ms then
      local life, label = match(sub(found[i + 1], 1, LONGEST), '^%S+ %d+ (%d+) (.*)$')
      all[#all + 1] = {acq = found[i], since = tonumber(first), label = label or '',
        silent = now_ms - (tonumber(second) - tonumber(life or 0))}
    else
      call('HDEL', lock.waiters, found[i])
    end
  end
  table.sort(all, function(a, b)
    if a.since ~= b.since then return a.since < b.since end
    return a.acq < b.acq
  end)
  if turn and #all == 0 then call('DEL', lock.waiters) end
  if #all == 0 and lock.text then lock.waiting = nil end
  return all, turn
end

-- Since when one waits that asks, by the clock of this node: as it is remembered, or for as long as it says; at its
-- first ask it is behind all others.
local function arrival(all, acq, waited)
  local since
  for _, one in ipairs(all) do if one.acq == acq then since = one.since end end
  if not since then since = waited == 0 and all[1] and math.max(now, all[#all].since + 1) or now end
  return waited > 0 and math.min(since, now - waited) or since
end

-- How many others wait for longer.
local function older_than(since, all, acq, turn)
  local older = 0
  for _, one in ipairs(all) do
    if one.acq ~= acq and one.acq ~= turn and one.since < since then older = older + 1 end
  end
  return older
end

local function remember(acq, since, life)
  if life == 0 or call('HLEN', lock.waiters) >= CROWD and call('HEXISTS', lock.waiters, acq) == 0 then return end
  must(call('HSET', lock.waiters, acq, format('%d %d %d ', since, now_ms + life, life)
    .. (string.gsub(label, '^~', ''))))
  if call('PTTL', lock.waiters) < life then call('PEXPIRE', lock.waiters, life) end
  if lock.text and not lock.waiting then
    lock.waiting = true
    save()
  end
end

-- Fence 1, which no lease has, tells the one that waits from a holder.
local function give_turn(acq)
  call('HSET', lock.waiters, '!', acq .. format(' %d', now_ms + WINDOW))
  tell('wanted', acq, 1)
end

-- The lock has become free: the oldest one that waits is told.
local function pass_on()
  local all = line()
  if all[1] then give_turn(all[1].acq) end
end
