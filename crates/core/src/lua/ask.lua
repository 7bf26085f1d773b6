-- ask: one acquisition asks for a lock. Follows queue.lua; precedes acquire.lua and heartbeat.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows, which makes an asker of them: `id`, `ttl`, watermark
--       `seen`, `label`; and if it waits, number of its `heartbeat` and claim `window`
-- Returns  nothing: it goes on to the script that follows; `ask` returns
--          {'granted', first, last, ms left, 1 if others wait, 1 if the counter was behind}
--          {'busy', ms left}   {'queued', ms left, places ahead}   {'withdrawn'}
--          {'no-ttl'}   {'layout', version}   {'counter', value}   {'exhausted', value}
--          or an error for a window that is none
--
-- Why: a heartbeat is a repeated acquire, so one function does both. A repeat after a lost reply gets
-- the same grant. Formats are those of queue.lua.

-- The answer to a repeat. A place that it still has is removed, or it would be granted twice. The
-- write of nothing (HDEL of a field that never exists) is refused by a replica, whose answers do not
-- count.
local function granted_before(asker, row, left)
  redis.call('HDEL', lease, '')
  local others = 0
  if redis.call('EXISTS', queue) == 1 then
    local line = survey(string.sub(asker.id, 1, 36))
    others = line.card - (line.rank and 1 or 0)
    if line.own and not above(line.own.number, string.sub(asker.id, 38)) then
      leave({line.runtime})
    end
  end
  return {'granted', row[3], row[4], left, others > 0 and 1 or 0, 0}
end

-- Asks for a lock that others may hold or wait for; `left` is -2 if nobody holds it.
local function contend(asker, left)
  asker.runtime, asker.number = string.sub(asker.id, 1, 36), string.sub(asker.id, 38)
  local line = survey(asker.runtime)
  if line.own and above(line.own.number, asker.number) then return {'withdrawn'} end
  hear(line, asker)
  if left ~= -2 then
    if not asker.heartbeat then return {'busy', left} end
    settle(line, asker)
    return {'queued', left, line.ahead}
  end

  choose(line, asker)
  if line.trouble then return line.trouble end
  local block = line.block
  if line.wins then
    local life = line.mine and line.own.window or tonumber(asker.ttl)
    settle(line, asker, life)
    return {'granted', block.first, block.last, life, block.contended, block.regressed}
  end
  settle(line, asker)
  tell_grant(line)
  if not asker.heartbeat then return {'busy', line.place.window} end
  return {'queued', line.place.window, line.ahead}
end

local function ask(asker, mark)
  if asker.heartbeat and (tonumber(asker.window) or 0) <= 0 then
    return redis.error_reply('ERR a place needs a window above 0 ms')
  end
  local left = redis.call('PTTL', lease)
  if left ~= -2 then
    local row = redis.call('HMGET', lease, 'v', asker.id, 'fence', 'last', 'kept')
    if row[1] ~= '1' then return {'layout', row[1] or ''} end
    if left == -1 then return {'no-ttl'} end
    if row[2] and not row[5] then return granted_before(asker, row, left) end
  end
  if redis.call('EXISTS', mark) == 1 then return {'withdrawn'} end
  return contend(asker, left)
end
