-- commands: run many commands in order, each on a lock, on one node of a quorum. A node decides alone;
-- that a majority has decided alike is seen by the asker.
--
-- KEYS  1 boot mark of the node, see boot.lua; then three for each command: lease, waiters, withdrawn
-- ARGV  1 retention of the counters, ms
--       2 prefix of the channels of runtimes
--       3 tolerance of clocks, µs
--       then for each command its word and arguments:
--       as         ttl in ms, label, with a '~' before it if the lock may be kept idle; no command,
--                  but what those behind it mean
--       ask        acquisition, attempt, ballot, since when it waits in µs (0: it does not wait), for how
--                  long its place is remembered in ms
--       settle     acquisition, attempt, fence
--       renew      acquisition, attempt, fence, ttl in ms
--       spread     acquisition, attempt, fence, token before its block, holds, number of their change
--       hold       acquisition, attempt, holds, number of the change, ttl in ms
--       end        acquisition, attempt (0: any), fence (0: any), life of a mark in ms (0: none)
--       keep       acquisition, attempt (0: any), fence (0: any), ms to keep the lock closed
--       withdraw   acquisition, life of the mark in ms
--       force      acquisition, fence
--       inspect    acquisition (of no meaning)
-- Returns  for each command, in order: a number, which is for an ask the last token before the block of
--          a grant for the whole ttl whose ballot was accepted, and for others the ms left or 1 for
--          a lease that was ended; 0 for a lease that is not there, which for a grant means that no token is
--          known; or
--          {'granted', before, accepted (1 or 0), least acceptable number, ms left, others wait (1 or 0)}
--          {'busy', ms left, keeps (1 or 0), older waiters, acquisition that holds or ''}
--          {'settled', ms left} for a lease that others wait for,
--          {'withdrawn', ended a grant (1 or 0)}, {'kept', ms left}, {'ended', counter},
--          {'free', counter}, {'held', ...}, {'out', ms until the node counts; -1: it has no boot mark},
--          {'layout', version}, {'refused', error}
--
-- Why: what waits for a connection at one moment travels as one call. The first lines serve a free lock,
-- its release and its renewal; the rest is made when a command needs it, since to make a function costs a
-- server as much as an argument. A vote is one of a ballot: a node accepts a number above its counter
-- and near its own clock, and moves its counter there.
--
-- Formats. The string `lease`, layout 4, has parts between single spaces, in decimal digits:
--   v4<flags>  `w` runtimes may wait, `m` there may be marks, `k` the lock is only kept closed
--   counter    the highest token that this node has accepted, 0 for none
--   expires    when the key expires, ms
-- and while somebody holds the lock (an expired lease stays until the next grant):
--   acquisition, attempt   of the holder
--   fence      last token of its block; 0 until it is settled
--   before     last token before its block, 0 if none was known
--   since      time of the grant, µs
--   ends       when the lease is over, ms
--   holds      holds/number of their last change
--   label      of the holder's runtime; it may have spaces
-- The hash `waiters` has '<since> <until ms> <life ms> <label>' for each acquisition that waits, where life is for how
-- long it was remembered when it was last heard; and '!' for the one whose turn it is: '<acquisition> <until ms>'. The sorted set `withdrawn` has acquisitions, and attempts
-- '<acquisition>/<attempt>', by the time until which they are dead.
local retention, channels, tolerance = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local call, sub, match, format = redis.pcall, string.sub, string.match, string.format
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local now_ms = (now - now % 1000) / 1000
local boot = call('GET', KEYS[1])
local out
if type(boot) ~= 'string' then
  out = -1
else
  local counts = tonumber(match(boot, '^%d+') or 0)
  if counts > now_ms then out = counts - now_ms end
end

local SIZES = {ask = 6, settle = 4, renew = 5, spread = 7, hold = 6, ['end'] = 5, keep = 5, withdraw = 3,
  force = 3, inspect = 2}
local VOTES = {ask = true, settle = true, renew = true, spread = true, hold = true}
local answers, at, arg, count = {}, 1, 4, (#KEYS - 1) / 3
local ttl, label, life, least, run
local times = ' ' .. format('%.0f', now) .. ' '

local function load_run()
  -- How long a runtime whose turn it is may take before others are served, ms.
  local WINDOW = 50
  -- The most runtimes that are remembered for a lock.
  local CROWD = 64
  local lock

  local function must(answer)
    if type(answer) == 'table' and answer.err then error(answer.err, 0) end
    return answer
  end

  local function read(at)
    lock = {key = KEYS[3 * at - 1], waiters = KEYS[3 * at], withdrawn = KEYS[3 * at + 1], counter = 0}
    local text = call('GET', lock.key)
    if type(text) == 'table' then
      if not string.find(text.err, 'WRONGTYPE', 1, true) then error(text.err, 0) end
      lock.layout = call('HGET', lock.key, 'v')
      if type(lock.layout) ~= 'string' then lock.layout = '' end
      return
    end
    if not text then
      lock.marks, lock.waiting = true, true
      return
    end
    local flags, counter, expires, rest = match(text, '^v4(%a*) (%d+) (%d+)(.*)$')
    if not flags then
      lock.layout = match(text, '^v(%d+)') or '3'
      return
    end
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
    local text = 'v4' .. (lock.waiting and 'w' or '') .. (lock.marks and 'm' or '')
      .. (lock.acq and lock.kept and 'k' or '') .. format(' %.0f %.0f', lock.counter, lock.expires)
    if lock.acq then
      text = text .. ' ' .. lock.acq .. ' ' .. lock.attempt .. format(' %.0f %.0f ', lock.fence, lock.before)
        .. lock.since .. format(' %.0f ', lock.ends) .. lock.holds .. ' ' .. lock.label
    end
    if keep then
      must(call('SET', lock.key, text, keep))
    else
      must(call('SET', lock.key, text, 'PX', format('%.0f', lock.expires - now_ms)))
    end
    lock.text = text
  end

  local function left() return lock.ends - now_ms - 1 end

  local function channel(acq) return channels .. (match(acq, '^(.*):%d+$') or acq) end

  -- Whom to tell what, after the last write.
  local messages = {}
  local function tell(word, acq, fence)
    local name = match(lock.key, '^[^{]*{(.*)}:lease$') or ''
    messages[#messages + 1] = {channel(acq), word .. ' ' .. acq .. format(' %.0f ', fence) .. name}
  end

  local function mark(member, life)
    must(call('ZADD', lock.withdrawn, format('%.0f', now_ms + life), member))
    call('ZREMRANGEBYSCORE', lock.withdrawn, '-inf', format('(%.0f', now_ms))
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

  -- Those who wait, the oldest first, and whose turn it is.
  local function line()
    local all, turn = {}, nil
    if not lock.waiting then return all end
    local found = call('HGETALL', lock.waiters)
    if type(found) ~= 'table' or found.err then return all end
    for i = 1, #found, 2 do
      local first, second = match(found[i + 1], '^(%S+) (%d+)')
      if found[i] == '!' then
        turn = {acq = first, ends = tonumber(second)}
      elseif second and tonumber(second) > now_ms then
        local life, label = match(found[i + 1], '^%S+ %d+ (%d+) (.*)$')
        all[#all + 1] = {acq = found[i], since = tonumber(first), label = label or '',
          silent = now_ms - (tonumber(second) - tonumber(life or 0))}
      else
        call('HDEL', lock.waiters, found[i])
      end
    end
    table.sort(all, function(a, b)
      if a.since ~= b.since then return a.since < b.since end
      return a.acq < b.acq
    end)
    if turn and #all == 0 then call('DEL', lock.waiters) end
    if #all == 0 and lock.text then lock.waiting = nil end
    return all, turn
  end

  local function remember(acq, since, life)
    if since == '0' or call('HLEN', lock.waiters) >= CROWD and call('HEXISTS', lock.waiters, acq) == 0 then return end
    must(call('HSET', lock.waiters, acq, since .. format(' %.0f %.0f ', now_ms + life, life)
      .. (string.gsub(label, '^~', ''))))
    if call('PTTL', lock.waiters) < life then call('PEXPIRE', lock.waiters, life) end
    if lock.text and not lock.waiting then
      lock.waiting = true
      save()
    end
  end

  -- Fence 1, which no lease has, tells the one that waits from a holder.
  local function give_turn(acq)
    call('HSET', lock.waiters, '!', acq .. format(' %.0f', now_ms + WINDOW))
    tell('wanted', acq, 1)
  end

  -- The lock has become free: the oldest one that waits is told.
  local function pass_on()
    local all = line()
    if all[1] then give_turn(all[1].acq) end
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

  local function ask(acq, attempt, ballot, since, heard)
    if is_marked(acq) or is_marked(acq .. '/' .. attempt) then return {'withdrawn', 0} end
    local F = tonumber(ballot)
    if lock.acq == acq and lock.attempt == attempt and not lock.kept then
      return {'granted', format('%.0f', lock.before), lock.fence == F and 1 or 0,
        format('%.0f', math.max(lock.counter + 1, now)), left(), 0}
    end
    -- An older try of the same acquisition, which nobody believes: the newer one takes its place.
    local is_newer = lock.acq == acq and not lock.kept and tonumber(lock.attempt) < tonumber(attempt)
    if lock.acq and not is_newer then
      local all = line()
      local older = 0
      for _, one in ipairs(all) do
        if one.acq ~= acq and (since == '0' or one.since < tonumber(since)) then older = older + 1 end
      end
      local keeps = not lock.kept and sub(lock.label, 1, 1) == '~'
      if lock.acq ~= acq then
        remember(acq, since, heard)
        if keeps and since ~= '0' then tell('wanted', lock.acq, math.max(lock.fence, 2)) end
      end
      return {'busy', left(), keeps and 1 or 0, older, lock.acq}
    end
    local all, turn = line()
    while not is_newer and all[1] and all[1].acq ~= acq and (since == '0' or all[1].since <= tonumber(since)) do
      local first = all[1].acq
      if turn and turn.acq == acq then break end
      if not turn then
        give_turn(first)
        turn = {acq = first, ends = now_ms + WINDOW}
      end
      if turn.ends > now_ms then
        local older = 0
        for _, one in ipairs(all) do
          if one.acq ~= acq and one.acq ~= turn.acq and (since == '0' or one.since < tonumber(since)) then
            older = older + 1
          end
        end
        remember(acq, since, heard)
        return {'busy', turn.ends - now_ms, 0, older, ''}
      end
      -- It did not come in time.
      call('HDEL', lock.waiters, turn.acq, '!')
      if turn.acq == first then table.remove(all, 1) end
      turn = nil
    end
    local counter, accepted = lock.counter, F > lock.counter and F >= now - tolerance and F <= now + tolerance
    local first = math.max(counter + 1, now)
    if first > 9007199254740991 then return {'exhausted', format('%.0f', counter)} end
    lock.acq, lock.attempt, lock.fence, lock.before = acq, attempt, accepted and F or 0, counter
    if accepted then lock.counter = F end
    lock.since, lock.ends, lock.holds, lock.label = format('%.0f', now), now_ms + 1 + ttl, '1/0', label
    lock.kept = nil
    if lock.waiting and #all > 0 then call('HDEL', lock.waiters, acq, '!') end
    save(ttl)
    return {'granted', format('%.0f', counter), accepted and 1 or 0, format('%.0f', first), ttl, granted(all)}
  end

  -- Writes the fence of a lease that stands; nil if another has passed it.
  local function fix(fence)
    if lock.fence == fence then return true end
    if fence <= lock.counter then return nil end
    lock.counter, lock.fence = fence, fence
    return true
  end

  local function extend(life)
    lock.ends = math.max(lock.ends, now_ms + 1 + life)
    save(life)
    return left()
  end

  local WORDS = {}
  function WORDS.ask(a) return ask(ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], tonumber(ARGV[a + 5])) end
  function WORDS.settle(a)
    if not is_its(ARGV[a + 1], ARGV[a + 2]) or lock.kept or not fix(tonumber(ARGV[a + 3])) then return 0 end
    if granted(line()) == 1 then
      save()
      return {'settled', left()}
    end
    save()
    return left()
  end
  function WORDS.renew(a)
    if not is_its(ARGV[a + 1], ARGV[a + 2]) or lock.kept or not fix(tonumber(ARGV[a + 3])) then return 0 end
    return extend(tonumber(ARGV[a + 4]))
  end
  function WORDS.spread(a)
    local acq, attempt, fence, before = ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
    if not lock.acq then
      if fence <= lock.counter or is_marked(acq) or is_marked(acq .. '/' .. attempt) then return 0 end
      lock.acq, lock.attempt, lock.fence, lock.before, lock.counter = acq, attempt, fence, before, fence
      lock.since, lock.ends, lock.kept = format('%.0f', now), now_ms + 1 + ttl, nil
      lock.holds, lock.label = ARGV[a + 5] .. '/' .. ARGV[a + 6], label
      save(ttl)
      return left()
    end
    if not is_its(acq, attempt) or lock.kept or not fix(fence) then return 0 end
    return extend(ttl)
  end
  function WORDS.hold(a)
    if not is_its(ARGV[a + 1], ARGV[a + 2]) or lock.kept then return 0 end
    local number = tonumber(match(lock.holds, '/(%d+)$'))
    if tonumber(ARGV[a + 4]) <= number then return left() end
    lock.holds = ARGV[a + 3] .. '/' .. ARGV[a + 4]
    return extend(tonumber(ARGV[a + 5]))
  end
  WORDS['end'] = function(a)
    local acq, attempt, fence, life = ARGV[a + 1], ARGV[a + 2], tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
    local ended = is_its(acq, attempt) and is_in_block(fence) and not lock.kept
    if lock.waiting then call('HDEL', lock.waiters, acq) end
    if ended then
      lock.acq = nil
      pass_on()
      save()
    elseif lock.kept and is_its(acq, attempt) and is_in_block(fence) then
      return {'kept', left()}
    elseif life > 0 then
      mark(acq .. '/' .. attempt, life)
    end
    return ended and 1 or 0
  end
  function WORDS.keep(a)
    local rest = tonumber(ARGV[a + 4])
    if not is_its(ARGV[a + 1], ARGV[a + 2]) or not is_in_block(tonumber(ARGV[a + 3])) then return 0 end
    if not lock.kept then
      lock.kept, lock.ends = true, now_ms + 1 + rest
      save(rest)
      return {'kept', rest}
    end
    return {'kept', left()}
  end
  function WORDS.withdraw(a)
    local acq, ended = ARGV[a + 1], 0
    call('HDEL', lock.waiters, acq)
    mark(acq, tonumber(ARGV[a + 2]))
    local turn = call('HGET', lock.waiters, '!')
    local is_turn = type(turn) == 'string' and match(turn, '^%S+') == acq
    if lock.acq == acq and not lock.kept then
      lock.acq, ended = nil, 1
      pass_on()
      save()
    elseif is_turn then
      call('HDEL', lock.waiters, '!')
      if not lock.acq then pass_on() end
    end
    return {'withdrawn', ended}
  end
  function WORDS.force(a)
    local fence = tonumber(ARGV[a + 2])
    if lock.acq ~= ARGV[a + 1] or not is_in_block(fence) then return 0 end
    tell('force-released', lock.acq, math.max(lock.fence, 1))
    lock.acq = nil
    local counter = math.max(lock.counter, fence)
    lock.counter = math.min(counter + 1, 9007199254740991)
    pass_on()
    save()
    return {'ended', format('%.0f', counter < lock.counter and lock.counter or 0)}
  end
  function WORDS.inspect(a)
    if not lock.acq then return {'free', format('%.0f', lock.counter)} end
    local all, waiters = line(), {}
    for i, one in ipairs(all) do waiters[i] = {one.acq, format('%.0f', one.since), one.silent, one.label} end
    return {'held', lock.acq, lock.attempt, format('%.0f', lock.fence), format('%.0f', lock.before),
      match(lock.holds, '^%d+'), left(), lock.label, format('%.0f', now - tonumber(lock.since)),
      lock.kept and 1 or 0, waiters}
  end

  return function(word, at, arg)
    local ok, answer = pcall(function()
      read(at)
      if lock.layout then return {'layout', lock.layout} end
      local answer = WORDS[word](arg)
      for _, message in ipairs(messages) do call('PUBLISH', message[1], message[2]) end
      messages = {}
      return answer
    end)
    if ok then return answer end
    messages = {}
    return {'refused', type(answer) == 'table' and answer.err or tostring(answer)}
  end
end

while at <= count do
  local word = ARGV[arg]
  if word == 'as' then
    ttl, label = tonumber(ARGV[arg + 1]), ARGV[arg + 2]
    arg, life = arg + 3, nil
    word = ARGV[arg]
  end
  local answer
  if out and VOTES[word] then
    answer = {'out', out}
  else
    local text = call('GET', KEYS[3 * at - 1])
    if type(text) == 'string' then
      if word == 'ask' and #text < 40 then
        local counter, expires = match(text, '^v4 (%d+) (%d+)$')
        if counter then
          if not life then
            life = format('%.0f', now_ms + 1 + ttl) .. ' 1/0 ' .. label
            least = now_ms + 1 + (ttl > retention and ttl or retention)
          end
          local ballot, before = tonumber(ARGV[arg + 3]), tonumber(counter)
          if ballot > before and before > 0 and ballot >= now - tolerance and ballot <= now + tolerance
            and tonumber(expires) >= least then
            local set = call('SET', KEYS[3 * at - 1], 'v4 ' .. ARGV[arg + 3] .. ' ' .. expires .. ' '
              .. ARGV[arg + 1] .. ' ' .. ARGV[arg + 2] .. ' ' .. ARGV[arg + 3] .. ' ' .. counter .. times
              .. life, 'KEEPTTL')
            answer = set.ok and before or {'refused', set.err}
          end
        end
      elseif word == 'end' then
        local free, acq, attempt, fence, ends = match(text,
          '^(v4 %d+ %d+) (%S+) (%d+) (%d+) %d+ %d+ (%d+) ')
        if acq == ARGV[arg + 1] and attempt == ARGV[arg + 2] and now_ms < tonumber(ends) then
          local set = call('SET', KEYS[3 * at - 1], free, 'KEEPTTL')
          answer = set.ok and 1 or nil
        end
      end
    end
    if not answer then
      run = run or load_run()
      answer = run(word, at, arg)
    end
  end
  answers[at] = answer
  at, arg = at + 1, arg + SIZES[word]
end
return answers
