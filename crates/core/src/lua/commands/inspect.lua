-- inspect: return who holds a lock, and who waits for it. Changes nothing. Follows line.lua.
--
-- KEYS  1 lease   2 queue   3 waiters   4 withdrawn
-- ARGV  1 and 2 as in head.lua
-- Returns  {'free', counter or ''}
--          {'held', ms left, server time in µs, waiters, acquisition, fence, holds, label, time of the
--          grant in µs, 1 if it is only kept closed, 1 if its runtime may keep it idle}, where
--          waiters are {acquisition, heard at in µs, label} for one after the other, in one flat list
--          {'layout', version}
--
-- Why: one step, so that lease, queue and clock belong together. It returns the first 128 live
-- waiters; dead places are skipped, not removed. The write of nothing comes before "free": a replica
-- may lack a lease that the master has.
read('GET', unpack(KEYS))
if lock.layout then return {'layout', lock.layout} end
local left = remaining()
if not left then
  redis.call('GETEX', lock.lease)
  return {'free', lock.counter or ''}
end

local function without_mark(label)
  return (string.gsub(label, '^~', ''))
end

local waiting_now, from = {}, 0
repeat
  local page = redis.call('ZRANGE', lock.queue, from, from + 127)
  for _, runtime in ipairs(page) do
    local place = place_of(redis.call('HGET', lock.waiters, runtime))
    if #waiting_now < 3 * 128 and is_live(place) then
      waiting_now[#waiting_now + 1] = runtime .. ':' .. place.number
      waiting_now[#waiting_now + 1] = string.format('%d', place.heard)
      waiting_now[#waiting_now + 1] = without_mark(place.label)
    end
  end
  from = from + 128
until #page < 128 or #waiting_now == 3 * 128

return {'held', left, micros, waiting_now, lock.holder, lock.fence,
  lock.kept and '0' or lock.holds or '1', without_mark(lock.label), lock.since, lock.kept and 1 or 0,
  keeps() and 1 or 0}
