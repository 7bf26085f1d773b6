-- inspect: return who holds some locks, and who waits for them. Changes nothing. Follows line.lua.
--
-- KEYS  four for each lock: 1 lease   2 queue   3 waiters   4 withdrawn
-- ARGV  1 and 2 as in head.lua
-- Returns  an answer for each lock:
--          {'free', counter or ''}
--          {'held', ms left, server time in µs, waiters, acquisition, fence, holds, label, time of the
--          grant in µs, 1 if it is only kept closed, 1 if its runtime may keep it idle, acquisitions of the first 128
--          readers or 0 for a writer}, where
--          waiters are {acquisition, heard at in µs, label, queued at in µs, 1 if it waits to read} for one after the
--          other, in one flat list
--          {'layout', version}   {'refused', words}
--
-- Why: one step, so that lease, queue and clock belong together. It looks at 1024 places at
-- most, which all locks of the call share, so that it stays short. It returns the first 128 live
-- waiters; dead places are skipped, not removed. A lock without waiters costs two commands, any other
-- two for each place and sixteen more. One that is free and looked at alone costs three more, so that keys of other
-- types show, which would spoil its next acquire. The write of nothing comes before "free": a
-- replica may lack a lease that the master has. A key of another type spoils only its own answer; any
-- other failure is that of all.

local PLACES = 128 * math.max(1, math.floor(8 / (#KEYS / 4)))

local function without_mark(label)
  return (string.gsub(label, '^~', ''))
end

local function waiters_now()
  local found, from = {}, 0
  repeat
    local page = redis.call('ZRANGE', lock.queue, from, from + 127, 'WITHSCORES')
    for at = 1, #page, 2 do
      local runtime = page[at]
      local place = is_runtime(runtime) and #found < 5 * 128 and place_of(field(lock.waiters, runtime))
      if is_live(place) then
        found[#found + 1] = string.sub(runtime, 1, 36) .. ':' .. place.number
        found[#found + 1] = string.format('%d', place.heard)
        found[#found + 1] = without_mark(place.label)
        found[#found + 1] = string.format('%.0f', tonumber(page[at + 1]))
        found[#found + 1] = reads(runtime) and 1 or 0
      end
    end
    from = from + 128
  until #page < 256 or #found == 5 * 128 or from == PLACES
  return found
end

local function inspect(at)
  read(false, unpack(KEYS, 4 * at - 3, 4 * at))
  if lock.layout then return {'layout', lock.layout} end
  local left = remaining()
  if not left then
    redis.call('GETEX', lock.lease)
    if #KEYS == 4 then
      redis.call('ZCARD', lock.queue)
      redis.call('HSTRLEN', lock.waiters, '')
      redis.call('ZCARD', lock.withdrawn)
    end
    return {'free', lock.counter or ''}
  end
  return {'held', left, micros, lock.waiting and waiters_now() or {}, lock.holder, lock.fence,
    lock.kept and '0' or lock.holds or '1', without_mark(lock.label), lock.since, lock.kept and 1 or 0,
    keeps() and 1 or 0, is_shared() and {unpack(readers_now(), 1, 128)} or 0}
end

local answers = {}
for at = 1, #KEYS / 4 do
  local ok, answer = pcall(inspect, at)
  if not ok and not is_foreign(answer) then error(answer, 0) end
  answers[at] = ok and answer or {'refused', words(answer)}
end
return answers
