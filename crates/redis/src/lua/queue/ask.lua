-- ask: grant a lock to an acquisition, or queue it. Follows line.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows, which makes an asker of them: `id`, `ttl`, watermark
--       `seen`, `label`, whether it `reads`; and if it waits, number of its `heartbeat` and claim `window`
-- Returns  nothing: it goes on to the script that follows; `ask` returns
--          {'granted', first, last, ms left, 1 if others wait, 1 if the counter was behind}
--          {'busy', ms left, 1 if the holder may keep the lock idle}
--          {'queued', ms left, places ahead}   {'withdrawn'}
--          {'exhausted', value}
--          or an error for a window that is none
--
-- Why: a heartbeat is a repeated acquire, so one function does both. A repeat after a lost reply gets
-- the same grant. A lease that expired is granted by the first command that comes, to the
-- acquisition that has waited longest. A holder that may keep the lock idle is told by the first in
-- the queue: when it queues, and with each of its heartbeats, because a message may be lost. Readers are told
-- by the first who keeps others from joining them.

-- The answer to a repeat. A place that it still has is removed, or it would be granted twice.
local function granted_before(asker, left)
  redis.call('GETEX', lock.lease)
  local others = 0
  if lock.waiting then
    local line = survey(asker.runtime)
    others = line.card - (line.rank and 1 or 0)
    if line.own and not above(line.own.number, asker.number) then
      leave({line.runtime})
    end
  end
  return {'granted', lock.fence, lock.kind == 's' and lock.fence or lock.counter, left, others > 0 and 1 or 0, 0}
end

-- Lets an asker, or one that waits, join the readers of the lock for so long.
local function admit(id, life, others)
  stretch(id, life)
  return {'granted', lock.fence, lock.fence, life, others > 0 and 1 or 0, 0}
end

-- Joins the readers of the lock, unless it is not the asker's turn; nil if it did not. Readers of whom nothing is
-- known are not joined: their lease runs out.
local function join(line, asker)
  if not asker.reads or not is_shared() or above(asker.seen, lock.fence) or is_barred(line)
    or redis.call('EXISTS', lock.readers) == 0 then
    return nil
  end
  local life = tonumber(line.mine and is_live(line.own) and line.own.window or asker.ttl)
  local answer = admit(asker.id, life, line.card - (line.rank and 1 or 0))
  if line.rank then leave({line.runtime}) end
  lock.waiting = line.card - (line.rank and 1 or 0) > 0
  save()
  return answer
end

-- Tells the runtime of each reader that one waits whom they keep out.
local function recall_readers()
  for _, id in ipairs(readers_now()) do
    tell(string.sub(id, 1, 36), table.concat({'wanted', id, lock.fence, name_of(lock.lease)}, ' '))
  end
end

-- Asks for a lock that others may hold or wait for; `left` is nil if nobody holds it.
local function contend(asker, left)
  local line = survey(asker.runtime)
  if line.own and above(line.own.number, asker.number) then return {'withdrawn'} end
  hear(line, asker)
  local joined = join(line, asker)
  if joined then return joined end
  if left then
    if not asker.heartbeat then
      -- A replica, whose text may be old, refuses this.
      redis.call('GETEX', lock.lease)
      return {'busy', left, keeps() and 1 or 0}
    end
    local wanted = is_shared() and bars(asker.runtime, asker.seen) and not is_barred(line)
    settle(line, asker)
    if wanted then recall_readers() end
    if line.ahead == 0 and keeps() then
      tell(string.sub(lock.holder, 1, 36),
        table.concat({'wanted', lock.holder, lock.fence, name_of(lock.lease)}, ' '))
    end
    return {'queued', left, line.ahead}
  end

  choose(line, asker)
  if line.trouble then return line.trouble end
  local block = line.block
  local life = line.wins and tonumber(line.mine and line.own.window or asker.ttl)
  settle(line, asker, life)
  tell_grant(line)
  if line.wins then return {'granted', block.first, block.last, life, block.contended, block.behind} end
  if not asker.heartbeat then return {'busy', remaining(), keeps() and 1 or 0} end
  return {'queued', remaining(), line.ahead}
end

-- Whether an acquisition was withdrawn.
local function is_withdrawn(id)
  if not (lock.marks and millis < lock.marks) then return false end
  return (tonumber(redis.call('ZSCORE', lock.withdrawn, id)) or 0) > tonumber(millis)
end

local function ask(asker)
  if asker.heartbeat and (tonumber(asker.window) or 0) <= 0 then
    error('ERR a place needs a window above 0 ms', 0)
  end
  seat_of(asker)
  local left = left_of(asker.id)
  if left then return granted_before(asker, left) end
  if not lock.counter then
    -- A lock that was lost does not say whether there are marks. If there are, the grant says so again.
    local life = redis.call('PTTL', lock.withdrawn)
    if life ~= -2 then lock.marks = after(math.max(life, 0)) end
  end
  if is_withdrawn(asker.id) then return {'withdrawn'} end
  return contend(asker, remaining())
end
