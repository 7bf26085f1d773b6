-- ask: votes for a lease. Follows line.lua.
--
-- KEYS  as head.lua
-- ARGV  as head.lua
-- Returns  nothing: it goes on to rest.lua
--
-- Why: an ask may come twice, late, or after a newer one of the same acquisition; each is a try of its own. Who waits
-- for longer is before: how long is told, and counted from the first ask on, never a time of day of an asker.
local function ask(acq, attempt, ballot, waited, heard)
  if is_marked(acq) or is_marked(acq .. '/' .. attempt) then return {'withdrawn', 0} end
  local F, time = tonumber(ballot), format('%d', now)
  if lock.acq == acq and lock.attempt == attempt and not lock.kept then
    return {'granted', format('%d', lock.before), lock.fence == F and 1 or 0,
      format('%d', math.max(lock.counter + 1, now)), left(), 0, time}
  end
  -- An older try of the same acquisition, which nobody believes: the newer one takes its place.
  local is_newer = lock.acq == acq and not lock.kept and tonumber(lock.attempt) < tonumber(attempt)
  local all, turn = line()
  -- Who does not wait stands behind all.
  local since = heard > 0 and arrival(all, acq, waited) or math.huge
  if lock.acq and not is_newer then
    local keeps = not lock.kept and sub(lock.label, 1, 1) == '~'
    if lock.acq ~= acq then
      remember(acq, since, heard)
      if keeps and heard > 0 then tell('wanted', lock.acq, math.max(lock.fence, 2)) end
    end
    return {'busy', left(), keeps and 1 or 0, older_than(since, all, acq), lock.acq, time}
  end
  while not is_newer and all[1] and all[1].acq ~= acq and all[1].since <= since do
    local first = all[1].acq
    if turn and turn.acq == acq then break end
    if not turn then
      give_turn(first)
      turn = {acq = first, ends = now_ms + WINDOW}
    end
    if turn.ends > now_ms then
      remember(acq, since, heard)
      return {'busy', turn.ends - now_ms, 0, older_than(since, all, acq, turn.acq), '', time}
    end
    -- It did not come in time.
    call('HDEL', lock.waiters, turn.acq, '!')
    if turn.acq == first then table.remove(all, 1) end
    turn = nil
  end
  local counter, accepted = lock.counter, F > lock.counter and F >= now - tolerance and F <= now + tolerance
  local first = math.max(counter + 1, now)
  if first > 9007199254740991 then return {'exhausted', format('%d', counter)} end
  lock.acq, lock.attempt, lock.fence, lock.before = acq, attempt, accepted and F or 0, counter
  if accepted then lock.counter = F end
  lock.since, lock.ends, lock.holds, lock.label = format('%d', now), now_ms + 1 + ttl, '1/0', label
  lock.kept = nil
  if lock.waiting and #all > 0 then call('HDEL', lock.waiters, acq, '!') end
  save(ttl)
  return {'granted', format('%d', counter), accepted and 1 or 0, format('%d', first), ttl, granted(all), time}
end
