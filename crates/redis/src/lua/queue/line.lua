-- line: who waits for a lock, and the grants to them. Follows row.lua and tell.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the script that follows
--
-- Why: every script that ends a lease, or finds that it expired, grants the lock to the next live
-- waiter in the same step, by the same rules. First `survey` and `choose` read and check, then
-- `settle` writes. It adds before it removes, so that no key vanishes with its time to live.
--
-- ADR 0023
-- Formats. An acquisition is '<runtime uuid>:<number>-<word>': characters 1 to 36 are the runtime, those
-- from 38 on the number with the word, which is a secret of its runtime: a message is believed only with
-- it. `queue` is a sorted set with one member for each waiting runtime, its uuid; the score says when it
-- arrived, µs, and is above all others. `waiters` is a hash with the same uuid as a field. Its
-- value is a place: six parts between single spaces, the label last because it may have spaces:
--   <number and word of the acquisition> <heartbeat> <heard at, µs> <claim window, ms> <watermark> <label>
-- A '~' before the label becomes part of the lease, see grant.lua.
-- `withdrawn` is a sorted set of acquisitions that must not come back; the score says until when, ms.
-- A grant is told to the runtime of its acquisition, see tell.lua, as nine parts between single spaces, the name
-- last because it may have spaces:
--   granted <acquisition> <first token> <last token> <heartbeat> <ms left> <1 if others wait, or 0>
--   <1 if the counter was behind, or 0> <name>
-- That another runtime waits is published to the holder's runtime in the same way:
--   wanted <acquisition> <first token> <name>

local function place_of(text)
  local number, heartbeat, heard, window, seen, label =
    string.match(text or '', PLACE)
  if not number then return nil end
  return {number = number, heartbeat = heartbeat, heard = tonumber(heard),
    window = tonumber(window), seen = seen, label = label}
end

local function is_live(place)
  return place and now <= place.heard + place.window * 1000
end

-- Whether a member of a queue can be a runtime.
local function is_runtime(member)
  return #member == 36
end

-- What stands in a queue, unless somebody else wrote it.
local function runtime_of(member)
  if not is_runtime(member) then error('WRONGTYPE the queue is not that of a lock', 0) end
  return member
end

-- Reads the beginning of the queue, and the place of a runtime ('' for none) with its rank.
local function survey(runtime)
  local rows = redis.call('ZRANGE', lock.queue, 0, 7, 'WITHSCORES')
  local line = {card = #rows / 2, tail = rows[#rows] or 0, dead = {}, runtime = runtime}
  for i = 1, #rows, 2 do
    line[#line + 1] = runtime_of(rows[i])
    if rows[i] == runtime then line.rank = #line - 1 end
  end
  -- With or without a place: a hash of another type is found here, before anything is written.
  local own = field(lock.waiters, runtime)
  if line.card == 8 then
    line.card = redis.call('ZCARD', lock.queue)
    line.tail = redis.call('ZRANGE', lock.queue, -1, -1, 'WITHSCORES')[2]
    line.rank = line.rank or own and redis.call('ZRANK', lock.queue, runtime) or nil
  end
  if line.rank then line.own = place_of(own) end
  return line
end

-- Looks for the first live place; `line.skip` is the runtime whose place does not count. It looks at
-- 256 at most, so that it stays short, and removes the dead ones that it saw: the next walk goes on behind them.
local function walk(line)
  for at = 1, math.min(line.card, 256) do
    if not line[at] then
      for _, more in ipairs(redis.call('ZRANGE', lock.queue, #line, #line + 127)) do
        line[#line + 1] = runtime_of(more)
      end
    end
    local runtime = line[at]
    if runtime ~= line.skip then
      local place = runtime == line.runtime and line.own
        or place_of(field(lock.waiters, runtime))
      if is_live(place) then
        line.head, line.place = runtime, place
        return
      end
      line.dead[#line.dead + 1] = runtime
      if runtime == line.runtime then line.rank, line.own = nil, nil end
    end
  end
end

-- Takes note of an asker. If it waits, this is a heartbeat: its place is refreshed, and an older
-- place of its runtime does not count any more.
local function hear(line, asker)
  local own = line.own
  line.mine = own and own.number == asker.number
  if not asker.heartbeat then return end
  if line.mine then
    own.heard, own.window = now, tonumber(asker.window)
    if above(own.heartbeat, asker.heartbeat) then asker.heartbeat = own.heartbeat end
    if above(own.seen, asker.seen) then asker.seen = own.seen end
  else
    line.skip = line.runtime
  end
end

-- Decides who gets the free lock, with which block: the asker (nil for none) or the first live
-- waiter.
local function choose(line, asker)
  walk(line)
  line.mine = line.mine and line.own
  line.wins = asker and (not line.head or line.mine and line.head == line.runtime)
  local others = line.card - #line.dead
  if line.wins then
    if line.rank then others = others - 1 end
  elseif not line.head then
    return
  elseif not asker or not asker.heartbeat or line.rank then
    others = others - 1
  end
  local first, newest, behind = mint(lock.counter,
    line.wins and asker.seen or line.place.seen, others > 0)
  if not first then
    line.trouble = newest
    return
  end
  line.block = {first = first, last = newest, contended = others > 0 and 1 or 0, behind = behind}
end

local function keep_queue(life)
  redis.call('PEXPIRE', lock.queue, life)
  redis.call('PEXPIRE', lock.waiters, life)
end

-- Puts an asker at the tail, or refreshes its place.
local function write_place(line, asker)
  if not line.mine then redis.call('ZADD', lock.queue, math.max(line.tail + 1, now), asker.runtime) end
  redis.call('HSET', lock.waiters, asker.runtime,
    place_text(asker.number, asker.heartbeat, asker.window, asker.seen, asker.label))
end

local function enqueue(line, asker)
  local window = tonumber(asker.window)
  local life = window + 60000
  if line.card == 0 then
    -- If the new keys cannot get their time to live, neither stays.
    local ok, failure = pcall(function()
      write_place(line, asker)
      keep_queue(life)
    end)
    if ok then return end
    redis.call('DEL', lock.queue, lock.waiters)
    error(failure, 0)
  end
  write_place(line, asker)
  -- Both keys live equally long, unless `waiters` was lost and has just been made.
  local left = redis.call('PTTL', lock.queue)
  local least = left
  if not (line.own or line.place) then least = math.min(left, redis.call('PTTL', lock.waiters)) end
  if least < window then keep_queue(math.max(left, life)) end
end

-- Removes places; in parts, because Lua passes only so many arguments.
local function leave(runtimes)
  for from = 1, #runtimes, 1000 do
    local to = math.min(from + 999, #runtimes)
    redis.call('ZREM', lock.queue, unpack(runtimes, from, to))
    redis.call('HDEL', lock.waiters, unpack(runtimes, from, to))
  end
end

local function tell_grant(line)
  local place, block = line.place, line.block
  tell(line.head, table.concat({'granted', line.head .. ':' .. place.number, block.first,
    block.last, place.heartbeat, place.window, block.contended, block.behind, name_of(lock.lease)}, ' '))
end

-- Whether the holder's runtime may keep the lock idle. The mark is part of the label, so that the
-- fast path carries it from the asker to the lease without looking at it.
local function keeps()
  return lock.holder and not lock.kept and string.sub(lock.label, 1, 1) == '~'
end

-- Carries out what was chosen: `life` is that of a grant to the asker. Afterwards `line.ahead` is the
-- number of places before an asker that waits. The caller publishes the grant.
local function settle(line, asker, life)
  local gone, place, block = line.dead, line.place, line.block
  local ahead = (line.mine and line.rank or line.card) - #gone
  if line.rank and not line.mine then ahead = ahead - 1 end
  if block and line.wins then
    give(asker.id, block.first, block.last, asker.label, life)
    if line.rank then gone[#gone + 1] = asker.runtime end
  elseif block then
    give(line.head .. ':' .. place.number, block.first, block.last, place.label,
      tonumber(place.window))
    ahead = ahead - 1
  end
  local more = 0
  if asker and asker.heartbeat and not (line.wins and block) then
    enqueue(line, asker)
    line.ahead = ahead
    if not line.rank then more = 1 end
  end
  if block and not line.wins then gone[#gone + 1] = line.head end
  leave(gone)

  lock.waiting = line.card + more - #gone > 0
  save()
end

-- Runs a step that only reads; nil if a key of the queue is of another type.
local function unless_foreign(step, ...)
  local ok, answer = pcall(step, ...)
  if ok then return answer end
  if not is_foreign(answer) then error(answer, 0) end
end
