-- row: reads a lock and writes it. Follows head.lua; the other files of the slow path follow this one.
--
-- KEYS  as head.lua
-- ARGV  as head.lua
-- Returns  nothing: it goes on to line.lua
--
-- Why: a lock is one string, so that a usual command is one GET and one SET. What is seldom there has keys of its own.
local lock
local sub, match, format = string.sub, string.match, string.format
local retention, tolerance, channels = match(ARGV[1], '^(%d+) (%d+) (.*)$')
retention, tolerance = tonumber(retention), tonumber(tolerance)
-- What commands have in common: for how long a lease lives, for how long a place is remembered, both in ms, and the
-- label, with its mark.
local ttl, heard, label

local function must(answer)
  if type(answer) == 'table' and answer.err then error(answer.err, 0) end
  return answer
end

local function read(at)
  local key = KEYS[at + 1]
  local prefix = sub(key, 1, -6)
  lock = {key = key, waiters = prefix .. 'waiters', withdrawn = prefix .. 'withdrawn', counter = 0}
  local text = call('GETRANGE', lock.key, '0', TO)
  if type(text) == 'table' then
    if not string.find(text.err, 'WRONGTYPE', 1, true) then error(text.err, 0) end
    local size = call('HSTRLEN', lock.key, 'v')
    local version = type(size) == 'number' and size <= LONGEST and call('HGET', lock.key, 'v')
    lock.layout = type(version) == 'string' and sub(version, 1, 20) or ''
    return
  end
  if text == '' and call('EXISTS', lock.key) == 0 then
    lock.marks, lock.waiting = true, true
    return
  end
  local flags, counter, expires, rest = match(text, '^v5(%a*) (%d+) (%d+)(.*)$')
  if not flags then
    lock.layout = match(sub(text, 1, 20), '^v(%d+)') or '3'
    return
  end
  if #text > LONGEST then error('WRONGTYPE the text is not that of a lock', 0) end
  lock.text, lock.counter, lock.expires = text, tonumber(counter), tonumber(expires)
  lock.waiting = string.find(flags, 'w', 1, true)
  lock.marks = string.find(flags, 'm', 1, true)
  lock.kept = string.find(flags, 'k', 1, true)
  local acq, attempt, fence, before, since, ends, holds, label =
    match(rest, '^ (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  if acq and now_ms < tonumber(ends) then
    lock.acq, lock.attempt, lock.fence, lock.before = acq, attempt, tonumber(fence), tonumber(before)
    lock.since, lock.ends, lock.holds, lock.label = since, tonumber(ends), holds, label
  end
end

local function save(life)
  local least = math.max(retention, life or 0)
  local keep = 'KEEPTTL'
  if not lock.text or (lock.expires or 0) < now_ms + least then
    lock.expires = now_ms + 1 + math.floor(least * 1.125)
    keep = nil
  end
  local text = 'v5' .. (lock.waiting and 'w' or '') .. (lock.marks and 'm' or '')
    .. (lock.acq and lock.kept and 'k' or '') .. format(' %d %d', lock.counter, lock.expires)
  if lock.acq then
    text = text .. ' ' .. lock.acq .. ' ' .. lock.attempt .. format(' %d %d ', lock.fence, lock.before)
      .. lock.since .. format(' %d ', lock.ends) .. lock.holds .. ' ' .. lock.label
  end
  if keep then
    must(call('SET', lock.key, text, keep))
  else
    must(call('SET', lock.key, text, 'PX', format('%d', lock.expires - now_ms)))
  end
  lock.text = text
end

local function left() return lock.ends - now_ms - 1 end

local function channel(acq) return channels .. sub(acq, 1, 36) end

-- Whom to tell what, after the last write.
local messages = {}
local function tell(word, acq, fence)
  local name = match(lock.key, '^[^{]*{(.*)}:lease$') or ''
  messages[#messages + 1] = {channel(acq), word .. ' ' .. acq .. format(' %d ', fence) .. name}
end

local function mark(member, life)
  must(call('ZADD', lock.withdrawn, format('%d', now_ms + life), member))
  local over = call('ZCOUNT', lock.withdrawn, '-inf', format('(%d', now_ms))
  if type(over) == 'number' and over > 0 then
    call('ZREMRANGEBYRANK', lock.withdrawn, 0, math.min(over, 500) - 1)
  end
  if call('PTTL', lock.withdrawn) < life then call('PEXPIRE', lock.withdrawn, life) end
  if lock.text and not lock.marks then
    lock.marks = true
    save()
  end
end

local function is_marked(member)
  if not lock.marks then return false end
  local until_ = call('ZSCORE', lock.withdrawn, member)
  if until_ then return tonumber(until_) > now_ms end
  if lock.text and call('EXISTS', lock.withdrawn) == 0 then lock.marks = nil end
  return false
end

local function is_its(acq, attempt)
  return lock.acq == acq and (attempt == '0' or lock.attempt == attempt)
end

-- Whether a token is one of the block of the present lease.
local function is_in_block(fence)
  if fence == 0 then return true end
  if lock.before == 0 then return lock.fence == 0 or lock.fence == fence end
  return fence > lock.before and (lock.fence == 0 or fence <= lock.fence)
end

local function granted(all)
  local wait = 0
  for _, one in ipairs(all) do if one.acq ~= lock.acq then wait = 1 end end
  return wait
end
