-- pass_on: end a lease and grant the lock to the next waiter. Follows line.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows, which makes an asker of them: `following`, the next
--       acquisition of the same runtime, which is to queue behind the others; nil for none
-- Returns  nothing: it goes on to the script that follows; `pass_on` returns
--          {'released'}   {'kept', ms left}   {'gone'}   {'gone', 'lost'}   {'next-queued', ms left, places ahead}
--          {'next-granted', first, last, ms left, 1 if others wait, 1 if the counter was behind}
--
-- Why: the next acquisition queues in the same step, behind the others, so a turn costs one command.
-- The lease ends in whatever state queue and counter are. If the queue is foreign, nobody is granted the lock, and the
-- next acquisition does not queue: its next command is answered with the reason. A waiter that cannot be granted the
-- lock stays queued, and its next heartbeat is answered with the reason.

-- Reports what the next acquisition has, when the lease to be ended is gone.
local function report(following, first)
  local left = left_of(following.id)
  local line = unless_foreign(survey, following.runtime)
  if left then
    local others = line and line.card - (line.rank and 1 or 0) or 0
    return {'next-granted', lock.fence, lock.kind == 's' and lock.fence or lock.counter, left, others > 0 and 1 or 0, 0}
  end
  if not (line and line.own and line.own.number == following.number) then
    return gone(first)
  end
  return {'next-queued', remaining() or 0, line.rank}
end

-- A reader is gone; whether others go on, whose lease ends with the last of them. The caller saves the lock.
local function leaves_others(id)
  redis.call('ZREM', lock.readers, id)
  local over = redis.call('ZCOUNT', lock.readers, '-inf', millis)
  if over > 0 then redis.call('ZREMRANGEBYRANK', lock.readers, 0, math.min(over, 500) - 1) end
  local last = redis.call('ZRANGE', lock.readers, -1, -1, 'WITHSCORES')[2]
  if not last or not (millis < last) then return false end
  lock.ends = last
  return true
end

-- What the next acquisition of a reader has that has left others behind.
local function go_on(following)
  local answer = contend(following, remaining())
  if answer[1] == 'queued' then answer[1] = 'next-queued' end
  if answer[1] == 'granted' then answer[1] = 'next-granted' end
  return answer[1] == 'withdrawn' and {'released'} or answer
end

local function pass_on(id, first, following)
  if following then seat_of(following) end
  local shared = is_shared()
  local left = lock.fence == first and remaining()
  if shared then
    left = left and redis.call('ZSCORE', lock.readers, id) and left
  elseif lock.holder ~= id then
    left = nil
  end
  if not left and following then return report(following, first) end
  if not left or lock.kept then return left and {'kept', left} or gone(first) end
  if following and shared then following.ttl = following.window end
  if shared and leaves_others(id) then
    save()
    return following and not is_withdrawn(following.id) and unless_foreign(go_on, following) or {'released'}
  end
  local line = unless_foreign(function()
    local line = survey(following and following.runtime or '')
    -- Ignored if it is withdrawn, or older than the one that its runtime has queued.
    if following and (is_withdrawn(following.id)
      or line.own and above(line.own.number, following.number)) then
      following = nil
    end
    if following then hear(line, following) end
    choose(line, following)
    return line
  end)
  if not (line and line.block) then clear() end
  if not line then return {'released'} end
  local block, window = line.block, following and tonumber(following.window)
  settle(line, following, window)
  if block then tell_grant(line) end
  if not following then return {'released'} end
  if line.wins and block then
    return {'next-granted', block.first, block.last, window, block.contended, block.behind}
  end
  return {'next-queued', block and remaining() or 0, line.ahead}
end
