-- line: who waits for a lock, and the grants to them. Follows row.lua and tell.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the script that follows
--
-- Why: every script that ends a lease, or finds that it expired, grants the lock to the next live
-- waiter in the same step, by the same rules: to a writer, or to all readers who wait, and the two take turns (ADR 0050). First `survey` and `choose` read and check, then
-- `settle` writes. It adds before it removes, so that no key vanishes with its time to live.
--
-- ADR 0023
-- Formats. An acquisition is '<runtime uuid>:<number>-<word>': characters 1 to 36 are the runtime, those
-- from 38 on the number with the word, which is a secret of its runtime: a message is believed only with
-- it. `queue` is a sorted set with one member for each waiting runtime, its uuid; for one that waits to
-- read, with an 'r' behind it. The score says when it arrived, µs, and is above all others. `waiters` is a hash with the
-- same member as a field. Its value is a place: six parts between single spaces, the label last because it may have spaces:
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

-- Whether a member of a queue is that of a reader.
local function reads(member)
  return #member == 37
end

-- Whether a member of a queue can be a runtime.
local function is_runtime(member)
  return #member == 36 or reads(member) and string.sub(member, -1) == 'r'
end

-- The member of an acquisition, and the number of that with its word.
local function seat_of(asker)
  asker.runtime, asker.number = string.sub(asker.id, 1, 36) .. (asker.reads and 'r' or ''), string.sub(asker.id, 38)
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

-- Goes through the places in order until `visit` returns true; whether it did. `line.skip` is the runtime whose place
-- does not count. It looks at 256 at most, so that it stays short.
local function walk(line, visit)
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
      line.known = line.known or place
      if visit(runtime, is_live(place) and place, at) then return true end
    end
  end
end

-- Whether nobody joins the readers of the lock from behind a place: a writer's, or that of a reader who has seen a
-- greater fence.
local function bars(runtime, seen)
  return not reads(runtime) or above(seen, lock.fence)
end

-- Whether a live place before that of the asker keeps it from joining the readers of the lock.
local function is_barred(line)
  local barred
  walk(line, function(runtime, place)
    if not place then return end
    local is_its = line.mine and runtime == line.runtime
    barred = not is_its and bars(runtime, place.seen)
    return barred or is_its
  end)
  return barred
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

-- Collects the live places: the first one, or all where readers may wait. The dead ones before it are to go: the next
-- walk goes on behind them.
local function collect(line, asker)
  local all, has_readers = lock.readers_wait or asker and asker.reads, false
  line.live = {}
  walk(line, function(runtime, place, at)
    -- Also one that is dead: it may come back.
    has_readers = has_readers or reads(runtime)
    if place then
      line.live[#line.live + 1] = {runtime = runtime, place = place, at = at}
      return not all
    end
    if #line.live > 0 then return end
    line.dead[#line.dead + 1] = runtime
    if runtime == line.runtime then line.rank, line.own = nil, nil end
  end)
  if all then lock.readers_wait = has_readers or line.card > 256 end
  line.mine = line.mine and line.own and is_live(line.own)
  if not asker or line.mine and line.live[1] then return end
  -- One that waits is the last, and the only one if none of those that it saw lives; one that only tries passes nobody, but a reader passes readers.
  local passes = false
  for _, other in ipairs(line.live) do passes = passes or not (asker.reads and reads(other.runtime)) end
  if asker.heartbeat or not passes then
    line.live[#line.live + 1] = {runtime = asker.runtime, asks = true,
      place = {number = asker.number, seen = asker.seen, window = tonumber(asker.window), label = asker.label}}
  end
end

-- Those of the live places who get the free lock: all readers, or the first writer. After a writer these are the
-- readers, after readers the writer, if there is one; otherwise the first in line decides.
local function next_of(line)
  local first, readers, writer = line.live[1], {}, nil
  for _, one in ipairs(line.live) do
    if reads(one.runtime) then readers[#readers + 1] = one else writer = writer or one end
  end
  local reads_first = first and reads(first.runtime)
  if lock.holder then reads_first = lock.kind == 'x' end
  if #readers > 0 and (reads_first or not writer) then return readers end
  return {writer}
end

-- Decides who gets the free lock, with which block: the asker (nil for none) among them (`line.wins`), or others.
local function choose(line, asker)
  collect(line, asker)
  local next = next_of(line)
  local gone, seen, is_gone = 0, '0', false
  for _, one in ipairs(next) do
    is_gone = is_gone or one.at and one.runtime == line.runtime
    one.asks = one.asks or line.mine and one.runtime == line.runtime
    if one.at then gone = gone + 1 end
    if one.asks then line.wins = one end
    local its = one.asks and asker.seen or one.place.seen
    if above(its, seen) then seen = its end
  end
  if not next[1] then return end
  local others = line.card - #line.dead - gone
  -- The place of an asker that wins goes, whatever it is; one that goes on to wait has a place.
  line.leaves = line.wins and line.rank and not is_gone
  if line.leaves then others = others - 1 end
  if not line.wins and asker and asker.heartbeat and not line.rank then others = others + 1 end
  local shares = reads(next[1].runtime)
  local first, newest, behind = mint(lock.counter, seen, others > 0 and not shares)
  if not first then
    line.trouble = newest
    return
  end
  line.block = {first = shares and newest or first, last = newest, contended = others > 0 and 1 or 0, behind = behind}
  line.next = next
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
  if not (line.own or line.known) then least = math.min(left, redis.call('PTTL', lock.waiters)) end
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
  local block = line.block
  for _, one in ipairs(line.next) do
    if not one.asks then
      local runtime, place = string.sub(one.runtime, 1, 36), one.place
      tell(runtime, table.concat({'granted', runtime .. ':' .. place.number, block.first, block.last, place.heartbeat,
        place.window, block.contended, block.behind, name_of(lock.lease)}, ' '))
    end
  end
end

-- Whether the holder's runtime may keep the lock idle. The mark is part of the label, so that the
-- fast path carries it from the asker to the lease without looking at it.
local function keeps()
  return lock.holder and not lock.kept and string.sub(lock.label, 1, 1) == '~'
end

-- Writes the grant that was chosen: `life` is that of the asker's.
local function grant(line, asker, life)
  local next, block, longest = line.next, line.block, 0
  for _, one in ipairs(next) do
    one.id = one.asks and asker.id or string.sub(one.runtime, 1, 36) .. ':' .. one.place.number
    one.life = one.asks and life or tonumber(one.place.window)
    longest = math.max(longest, one.life)
  end
  local opener = next[1]
  local label = opener.asks and asker.label or opener.place.label
  if not reads(opener.runtime) then return give('x', opener.id, block.first, block.last, label, longest) end
  give('s', opener.id, block.first, block.last, (string.gsub(label, '^~', '')), longest)
  redis.call('DEL', lock.readers)
  for _, one in ipairs(next) do stretch(one.id, one.life) end
end

-- Carries out what was chosen: `life` is that of a grant to the asker. Afterwards `line.ahead` is the
-- number of places before an asker that waits. The caller publishes the grant.
local function settle(line, asker, life)
  local gone, next = line.dead, line.block and line.next or {}
  local waits = asker and asker.heartbeat and not (line.wins and line.block)
  local ahead = (line.mine and line.rank or line.card) - #gone
  if line.rank and not line.mine then ahead = ahead - 1 end
  for _, one in ipairs(next) do
    if one.at and not (line.mine and one.at > line.rank) then ahead = ahead - 1 end
  end
  if line.block then grant(line, asker, life) end
  if waits then
    enqueue(line, asker)
    line.ahead = ahead
    if asker.reads then lock.readers_wait = true end
  end
  local more = waits and not line.rank and 1 or 0
  for _, one in ipairs(next) do
    if one.at then gone[#gone + 1] = one.runtime end
  end
  if line.block and line.leaves then gone[#gone + 1] = asker.runtime end
  leave(gone)

  lock.waiting = line.card + more - #gone > 0
  if not lock.waiting then lock.readers_wait = nil end
  save()
end

-- Runs a step that only reads; nil if a key of the queue is of another type.
local function unless_foreign(step, ...)
  local ok, answer = pcall(step, ...)
  if ok then return answer end
  if not is_foreign(answer) then error(answer, 0) end
end
