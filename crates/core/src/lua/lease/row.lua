-- row: the hash of a lock, and what changes only it. Follows grant.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the part that follows
--
-- Why: one hash holds all that an uncontended lock needs, so that a script reads once and writes
-- once. The end of a lease is part of its text; the hash lives on, because it is the fence counter
-- too. The format stands in grant.lua.

-- The lock of the present command: its four keys, and what its hash says.
local lock

local function read(lease, queue, waiters, withdrawn)
  local row = redis.call('HMGET', lease, 'v', 'lock', 'hold', 'marks')
  lock = {lease = lease, queue = queue, waiters = waiters, withdrawn = withdrawn, version = row[1]}
  -- What another layout says with the same words does not count, and is left as it is.
  if row[1] ~= '2' then return end
  lock.hold, lock.marks = row[3], row[4]
  local flags, counter, expires, rest = string.match(row[2] or '', '^([wkhm]*)(%S*) (%d+)(.*)$')
  if row[2] and not flags then
    -- Not understood: no token, and left as it is.
    lock.counter = row[2] .. '?'
    return
  end
  lock.text, lock.counter, lock.expires = row[2] or '', counter, expires
  if not flags then return end
  lock.waiting, lock.kept = string.find(flags, 'w', 1, true), string.find(flags, 'k', 1, true)
  lock.holder, lock.fence, lock.since, lock.ends, lock.label =
    string.match(rest, '^ (%S+) (%d+) (%d+) (%d+) (.*)$')
end

local function text_of_lock()
  local text = (lock.waiting and 'w' or '') .. (lock.kept and 'k' or '') .. (lock.hold and 'h' or '')
    .. (lock.marks and 'm' or '') .. lock.counter .. ' ' .. (lock.expires or '0')
  if lock.holder then
    text = text .. ' ' .. lock.holder .. ' ' .. lock.fence .. ' ' .. lock.since .. ' ' .. lock.ends
      .. ' ' .. lock.label
  end
  return text
end

-- Writes what a command has changed. A counter that was lost is not made up, and a text that is not
-- understood stays.
local function save()
  if not lock.counter or not lock.text then return end
  local text = text_of_lock()
  if text ~= lock.text then
    redis.call('HSET', lock.lease, 'lock', text)
    lock.text = text
  end
end

-- The milliseconds that the lease has left; nil if nobody holds the lock.
local function remaining()
  if not lock.holder or not (millis < (lock.ends or '')) then return nil end
  return lock.ends - millis - 1
end

-- The milliseconds that this lease has left; nil if it is gone, or only kept.
local function remaining_of(id, first)
  return lock.holder == id and lock.fence == first and not lock.kept and remaining() or nil
end

-- A write of nothing. A replica refuses it, so that its answers do not count. A full server refuses
-- no write that follows it in the same script.
local function prove()
  redis.call('HDEL', lock.lease, '')
end

-- How long the hash must live for the retention, and longer than a lease, in ms; nil if it lives long
-- enough. It lives an eighth longer than it must, so that most grants need not refresh it.
local function due_life(life)
  local least = math.max(retention, life)
  if retention > 0 and (lock.expires or '') < after(least) then return math.floor(least * 1.125) end
end

-- Lets a hash that is there live long enough. The caller saves the lock.
local function outlive(life)
  local due = due_life(life)
  if due then
    redis.call('PEXPIRE', lock.lease, due)
    lock.expires = after(due)
  elseif retention == 0 and (lock.expires or '0') ~= '0' then
    redis.call('PERSIST', lock.lease)
    lock.expires = '0'
  end
end

-- Forgets the holds of the last lease.
local function forget_holds()
  redis.call('HDEL', lock.lease, 'holds', 'hold')
  lock.hold, lock.kept = nil
end

-- Writes a grant. If the hash cannot get its time to live, nothing stays of it.
local function give(id, first, newest, label, life)
  local is_new = not lock.version
  if not is_new then outlive(life) end
  -- Left behind by a lease that expired, or that this one follows.
  if lock.hold or lock.kept then forget_holds() end
  lock.version, lock.counter, lock.holder, lock.fence = '2', newest, id, first
  lock.since, lock.ends, lock.label = micros, after(life), label
  if not is_new then return save() end

  local due = due_life(life)
  lock.expires = due and after(due)
  lock.text = text_of_lock()
  redis.call('HSET', lock.lease, 'v', '2', 'lock', lock.text)
  local limited = due and redis.pcall('PEXPIRE', lock.lease, due)
  if type(limited) == 'table' then
    redis.call('DEL', lock.lease)
    lock.version, lock.counter = nil
    error(limited, 0)
  end
end

-- Ends the lease. Its last token stays, as the counter. A full server refuses no write that follows
-- the first one.
local function clear()
  forget_holds()
  lock.holder = nil
  save()
end

-- Forgets marks that are over, and writes what a command has changed.
local function finish_lock()
  if lock.version ~= '2' then return end
  if lock.marks and not (millis < lock.marks) then
    redis.call('HDEL', lock.lease, 'marks')
    lock.marks = nil
  end
  save()
end

-- Grants a lock of which nothing is there.
local function begin(id, ttl, seen, label)
  if not ttl or ttl <= 0 then error('ERR a lease needs a ttl above 0 ms', 0) end
  if lock.version or redis.call('EXISTS', lock.lease, lock.queue, lock.withdrawn) > 0 then
    return nil
  end
  local first, newest, behind = mint(nil, seen)
  if not first then return newest end
  give(id, first, newest, label, ttl)
  return {'granted', first, newest, ttl, 0, behind}
end

-- Keeps a lock closed for exactly a given time, in place of its lease. A kept lease is neither ended
-- nor kept again.
local function keep(id, first, life)
  local left = lock.holder == id and lock.fence == first and remaining()
  prove()
  if not left then return {'gone'} end
  if lock.kept then return {'kept', left} end
  outlive(life)
  lock.ends, lock.kept = after(life), true
  save()
  return {'kept', life}
end

-- Sets the absolute number of holds of a lease, and extends it; never grants. The change is
-- numbered, so a late copy changes nothing, and of two changes that overtake each other the later
-- one stands.
local function set_holds(id, first, holds, number, ttl)
  local left = remaining_of(id, first)
  prove()
  if not left then return {'gone'} end
  if tonumber(number) <= (tonumber(lock.hold) or 0) then return {'held', left} end
  left = math.max(left, ttl)
  outlive(left)
  lock.hold, lock.ends = number, after(left)
  lock.text = text_of_lock()
  redis.call('HSET', lock.lease, 'holds', holds, 'hold', number, 'lock', lock.text)
  return {'held', left}
end
