-- row: the hash of a lock, and what changes only it. Follows grant.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the part that follows
--
-- Why: one hash holds all that an uncontended lock needs, so that a script reads once and writes
-- once. The end of a lease is a field; the hash lives on, because it is the fence counter too. The
-- format stands in grant.lua.

-- The lock of the present command: its four keys, and the fields of its hash.
local lock

local function read(lease, queue, waiters, withdrawn)
  local row = redis.call('HMGET', lease, 'v', 'counter', 'holder', 'fence', 'end', 'kept', 'hold',
    'waiting', 'marks', 'expires', 'more')
  lock = {lease = lease, queue = queue, waiters = waiters, withdrawn = withdrawn, version = row[1]}
  -- What another layout says with the same words does not count, and is left as it is.
  if row[1] ~= '2' then return end
  lock.counter, lock.holder, lock.fence, lock.ends = row[2], row[3], row[4], row[5]
  lock.kept, lock.hold, lock.waiting, lock.marks = row[6], row[7], row[8], row[9]
  lock.expires, lock.more = row[10], row[11]
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

-- Lets the hash live for the retention, and longer than a lease. It lives an eighth longer than it
-- must, so that most grants need not refresh it.
local function outlive(life)
  if retention == 0 then
    if lock.expires then
      redis.call('PERSIST', lock.lease)
      redis.call('HDEL', lock.lease, 'expires')
    end
    return
  end
  local least = math.max(retention, life)
  if (lock.expires or '') >= after(least) then return end
  local longer = math.floor(least * 1.125)
  redis.call('PEXPIRE', lock.lease, longer)
  redis.call('HSET', lock.lease, 'expires', after(longer))
end

-- Writes a grant. If the hash cannot get its time to live, nothing stays of it.
local function give(id, first, newest, label, life)
  -- Left behind by a lease that expired, or that this one follows.
  if lock.hold or lock.kept then redis.call('HDEL', lock.lease, 'holds', 'hold', 'kept') end
  redis.call('HSET', lock.lease, 'v', '2', 'counter', newest, 'holder', id, 'fence', first,
    'end', after(life), 'since', micros, 'label', label)
  local ok, failure = pcall(outlive, life)
  if ok then
    lock.version, lock.hold, lock.kept = '2', nil
    return
  end
  if lock.version then
    redis.call('HDEL', lock.lease, 'holder', 'fence', 'end', 'since', 'label')
  else
    redis.call('DEL', lock.lease)
  end
  error(failure, 0)
end

-- Ends the lease. Its last token stays, as the counter.
local function clear()
  redis.call('HDEL', lock.lease, 'holder', 'fence', 'end', 'since', 'label', 'holds', 'hold', 'kept')
  lock.hold, lock.kept = nil
end

-- Says in the hash whether usual.lua suffices, after a command. A hash that is not there does not say
-- so, nor does one of another layout.
local function note_more()
  if lock.version ~= '2' then return end
  if lock.marks and not (millis < lock.marks) then
    redis.call('HDEL', lock.lease, 'marks')
    lock.marks = nil
  end
  local more = lock.waiting or lock.hold or lock.kept or lock.marks
  if more and not lock.more then
    redis.call('HSET', lock.lease, 'more', '1')
  elseif lock.more and not more then
    redis.call('HDEL', lock.lease, 'more')
  end
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
  redis.call('HSET', lock.lease, 'end', after(life), 'kept', '1')
  lock.kept = '1'
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
  redis.call('HSET', lock.lease, 'holds', holds, 'hold', number, 'end', after(left))
  lock.hold = number
  return {'held', left}
end
