-- row: the text of a lock, and what changes only it. Follows grant.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the part that follows
--
-- Why: one text holds all that an uncontended lock needs, so that a script reads once and writes
-- once. The end of a lease is part of it; the key lives on, because it is the fence counter too. The
-- format stands in grant.lua.

-- The lock of the present command: its four keys, and what its text says.
local lock

local NEVER = '0000000000000'

-- A number with zeros before it.
local function wide(number, width)
  return string.sub('00000000000000000000' .. number, -width)
end

local function text_of_lock()
  local text = 'v4 ' .. (lock.holder and lock.kind or 'x') .. (lock.waiting and 'w' or '-') .. (lock.kept and 'k' or '-')
    .. (lock.change and 'h' or '-') .. (lock.marks and 'm' or '-') .. (lock.readers_wait and 'r' or '-') .. '-- ' .. wide(lock.counter, 16) .. ' ' .. wide(lock.expires, 13)
  if lock.holder then
    text = text .. ' ' .. wide(lock.fence, 16) .. ' ' .. wide(lock.since, 16) .. ' ' .. wide(lock.ends, 13) .. ' '
      .. lock.holder .. ' ' .. lock.label
  end
  return text .. (lock.change and ' ' .. wide(lock.holds, 10) .. '/' .. wide(lock.change, 20) or '')
    .. (lock.marks and ' ' .. wide(lock.marks, 13) or '')
end

-- Reads the parts of a text. Whether they are those of a lock shows when they are put together again.
local function parse(text)
  local kind, flags, counter, expires, rest = string.match(text, '^v4 ([xs])(%S+) (%d+) (%d+)(.*)$')
  if not flags then return end
  local function has(flag) return string.find(flags, flag, 1, true) end
  local holds, change
  lock.counter, lock.expires = bare(counter), expires
  lock.kind, lock.waiting, lock.kept = kind, has('w') ~= nil, has('k') ~= nil
  lock.readers_wait = has('r') ~= nil
  if has('m') then lock.marks, rest = string.match(rest, ' (%d+)$') or '', string.sub(rest, 1, -15) end
  if has('h') then
    holds, change, rest = string.sub(rest, -31, -22), string.sub(rest, -20), string.sub(rest, 1, -33)
    lock.holds, lock.change = bare(holds) or '', bare(change) or ''
  end
  lock.fence, lock.since, lock.ends, lock.holder, lock.label =
    string.match(rest, '^ (%d+) (%d+) (%d+) (%S+) (.*)$')
  lock.fence = lock.fence and bare(lock.fence)
end

-- Where those who share a lease stand.
local function readers_of(lease)
  return string.sub(lease, 1, -6) .. 'readers'
end

-- Reads a lock, no further than one of ours can be long. With `writes`, it also does a write of nothing: a replica
-- refuses that, so that its answers do not count, and a full server refuses no write that follows it in the
-- same script. That is GETEX, or, for a text too long to be read, ZREM: on a text it fails as WRONGTYPE on a master,
-- as READONLY on a replica. Of a lock that was lost it is not known whether readers wait.
local function read(writes, lease, queue, waiters, withdrawn)
  lock = {lease = lease, queue = queue, waiters = waiters, withdrawn = withdrawn, readers = readers_of(lease), text = '',
    kind = 'x', readers_wait = true}
  local ok, text = pcall(redis.call, 'GETRANGE', lease, '0', TO)
  local is_long = ok and #text > LONGEST
  if is_long and writes then
    local _, failure = pcall(redis.call, 'ZREM', lease, '')
    if not is_foreign(failure) then error(failure, 0) end
  elseif writes then
    ok, text = pcall(redis.call, 'GETEX', lease)
  elseif text == '' and redis.call('EXISTS', lease) == 0 then
    text = nil
  end
  if not ok then
    if not is_foreign(text) then error(text, 0) end
    -- A hash may be of an older layout. With a key of any other type, this fails as well.
    lock.layout = string.sub(field(lease, 'v') or '', 1, 20)
  elseif text then
    -- A quorum has flags behind its version.
    lock.layout = string.match(string.sub(text, 1, 20), '^v(%d+)%a* ')
      or string.match(text, '^w?k?%d[^ ]* %d') and '3'
    if lock.layout == '4' then lock.layout = nil end
  end
  -- Of another layout nothing is parsed, and nothing of its text is written.
  if lock.layout or not text then return end
  lock.text = text
  if not is_long then parse(text) end
  if not lock.counter or text_of_lock() ~= text then error('WRONGTYPE the text is not that of a lock', 0) end
end

-- Writes what a command has changed, without marks that are over. A counter that was lost is not made
-- up.
local function save()
  if lock.marks and not (millis < lock.marks) then lock.marks = nil end
  local text = lock.counter and text_of_lock() or lock.text
  if text ~= lock.text then
    redis.call('SET', lock.lease, text, unpack(lock.life or {'KEEPTTL'}))
    lock.text, lock.life = text, nil
  end
end

-- The milliseconds that the lease has left; nil if nobody holds the lock.
local function remaining()
  if not lock.holder or not (millis < (lock.ends or '')) then return nil end
  return lock.ends - millis - 1
end

-- Whether readers share the lock.
local function is_shared()
  return lock.kind == 's' and remaining() ~= nil
end

-- The milliseconds that an acquisition has left of the lease; nil if it has none, or only keeps the lock closed.
local function left_of(id)
  if not is_shared() then return lock.holder == id and not lock.kept and remaining() or nil end
  local ends = redis.call('ZSCORE', lock.readers, id)
  return ends and millis < ends and ends - millis - 1 or nil
end

-- The same of the lease with this first token.
local function remaining_of(id, first)
  return lock.fence == first and left_of(id) or nil
end

-- Whether the data of a lease was lost: the lock has counted no further than before this first token.
local function is_lost(first)
  return not lock.counter or above(first, lock.counter)
end

-- The answer about a lease that is not there.
local function gone(first)
  return is_lost(first) and {'gone', 'lost'} or {'gone'}
end

-- Lets the key live for the retention, and longer than a lease; as soon as the caller saves the lock.
-- It lives an eighth longer than it must, so that most grants need not refresh it.
local function outlive(life)
  if retention == 0 then
    if lock.expires ~= NEVER then lock.expires, lock.life = NEVER, {} end
    return
  end
  local least = math.max(retention, life)
  if (lock.expires or '') < after(least) then
    local due = math.floor(least * 1.125)
    lock.expires, lock.life = after(due), {'PX', due}
  end
end

-- Writes a grant to a writer ('x'), or to readers ('s').
local function give(kind, id, first, newest, label, life)
  outlive(life)
  lock.kind, lock.counter, lock.holder, lock.fence = kind, newest, id, first
  lock.since, lock.ends, lock.label = micros, after(life), label
  -- Left behind by a lease that expired, or that this one follows.
  lock.holds, lock.change, lock.kept = nil
  save()
end

-- Ends the lease. Its last token stays, as the counter.
local function clear()
  lock.holder, lock.holds, lock.change, lock.kept = nil
  save()
end

-- Grants a lock that has no text, no queue and no marks.
local function begin(id, ttl, seen, label)
  if not ttl or ttl <= 0 then error('ERR a lease needs a ttl above 0 ms', 0) end
  if lock.counter or redis.call('EXISTS', lock.queue, lock.withdrawn) > 0 then return nil end
  local first, newest, behind = mint(nil, seen)
  if not first then return newest end
  lock.readers_wait = nil
  give('x', id, first, newest, label, ttl)
  return {'granted', first, newest, ttl, 0, behind}
end

-- Keeps a lock closed for exactly a given time, in place of its lease. A kept lease is neither ended
-- nor kept again. The caller saves the lock.
local function keep(id, first, life)
  local left = lock.holder == id and lock.fence == first and remaining()
  if not left then return gone(first) end
  if lock.kept then return {'kept', left} end
  outlive(life)
  lock.ends, lock.kept = after(life), true
  return {'kept', life}
end

-- The acquisitions that share the lease, in order; no more than 1024, so that it stays short.
local function readers_now()
  local ids, live = redis.call('ZRANGE', lock.readers, -1024, -1, 'WITHSCORES'), {}
  for at = 1, #ids, 2 do
    if millis < ids[at + 1] then live[#live + 1] = ids[at] end
  end
  table.sort(live)
  return live
end

-- Lets a reader read for so long at least, and the lease of all as long as that. The caller saves the lock.
-- Formats. `readers` is a sorted set of the acquisitions that share the lease; the score says until when, ms. It is
-- not declared: it has the slot of the lease, and only a lock of kind 's' has one (ADR 0035).
-- ADR 0050
local function stretch(id, life)
  local ends = after(life)
  redis.call('ZADD', lock.readers, ends, id)
  if redis.call('PTTL', lock.readers) < life then redis.call('PEXPIRE', lock.readers, life + 60000) end
  if lock.ends < ends then lock.ends = ends end
  outlive(life)
  return life
end

-- Sets the absolute number of holds of a lease, and extends it; never grants. A reader's are not kept. The change is
-- numbered, so a late copy changes nothing, and of two changes that overtake each other the later
-- one stands. The caller saves the lock.
-- ADR 0010
local function set_holds(id, first, holds, number, ttl)
  local left = remaining_of(id, first)
  if not left then return gone(first) end
  if is_shared() then return {'held', stretch(id, math.max(left, ttl))} end
  if tonumber(number) <= (tonumber(lock.change) or 0) then return {'held', left} end
  left = math.max(left, ttl)
  outlive(left)
  lock.holds, lock.change, lock.ends = holds, number, after(left)
  return {'held', left}
end
