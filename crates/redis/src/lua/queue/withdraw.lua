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

local function withdraw(id, life)
  local ended = lock.holder == id and not lock.kept and remaining()
  local line = (lock.waiting or not lock.counter) and unless_foreign(function()
    local line = survey(string.sub(id, 1, 36))
    if line.own and line.own.number == string.sub(id, 38) then
      line.skip, line.rank, line.own = line.runtime, nil, nil
      line.dead[1] = line.runtime
    end
    if ended then choose(line) end
    return line
  end)
  if ended then clear() end
  if line then settle(line) end
  local ok, failure = pcall(mark, id, tonumber(life))
  if line and line.block then tell_grant(line) end
  if not ok then error(failure, 0) end
  return {'withdrawn', ended and 1 or 0}
end
