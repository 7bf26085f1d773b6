-- withdraw: take an acquisition back: its place, or its grant, which the next waiter gets. Follows
-- line.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the script that follows; `withdraw` returns
--          {'withdrawn', 1 if a grant was ended, else 0}
--
-- Why: the acquire may be granted, queued, refused, lost, or still in flight on a connection that
-- was given up. The mark keeps such a late copy from becoming a lease that nobody knows of. It is
-- written last, because the lease has to end even if the mark is refused. Then the answer is an error,
-- so that the withdrawal is sent again.

-- Marks an acquisition as withdrawn, and forgets older marks, so many at a time that it stays short. The caller
-- saves the lock.
-- ADR 0005
local function mark(id, life)
  local until_when = after(life)
  redis.call('ZADD', lock.withdrawn, until_when, id)
  local limited = redis.pcall('PEXPIRE', lock.withdrawn, life)
  if type(limited) == 'table' then
    redis.call('ZREM', lock.withdrawn, id)
    error(limited, 0)
  end
  local over = redis.call('ZCOUNT', lock.withdrawn, '-inf', millis)
  if over > 0 then redis.call('ZREMRANGEBYRANK', lock.withdrawn, 0, math.min(over, 500) - 1) end
  lock.marks = until_when
end

-- Takes the place of an acquisition out of the line, whether it waits to write or to read.
local function drop_place(id)
  local asker, line = {id = id}
  repeat
    seat_of(asker)
    line = survey(asker.runtime)
    if line.own and line.own.number == asker.number then
      line.skip, line.rank, line.own = line.runtime, nil, nil
      line.dead[1] = line.runtime
      return line
    end
    asker.reads = not asker.reads and lock.readers_wait
  until not asker.reads
  return line
end

-- Those who wait to read, and before whom no writer waits any more.
local function joining(line)
  local all = {}
  if not is_shared() or redis.call('EXISTS', lock.readers) == 0 then return all end
  walk(line, function(runtime, place)
    if place and bars(runtime, place.seen) then return true end
    if place then all[#all + 1] = {runtime = runtime, place = place} end
  end)
  return all
end

local function withdraw(id, life)
  local ended = left_of(id)
  local over = ended and not (is_shared() and leaves_others(id))
  local joins = {}
  local line = (lock.waiting or not lock.counter) and unless_foreign(function()
    local line = drop_place(id)
    if over then choose(line) else joins = joining(line) end
    return line
  end)
  if over then clear() end
  for _, one in ipairs(joins) do
    stretch(string.sub(one.runtime, 1, 36) .. ':' .. one.place.number, tonumber(one.place.window))
    line.dead[#line.dead + 1] = one.runtime
  end
  if line then settle(line) end
  local ok, failure = pcall(mark, id, tonumber(life))
  if joins[1] then
    line.next = joins
    line.block = {first = lock.fence, last = lock.fence, contended = lock.waiting and 1 or 0, behind = 0}
  end
  if line and line.block then tell_grant(line) end
  if not ok then error(failure, 0) end
  return {'withdrawn', ended and 1 or 0}
end
