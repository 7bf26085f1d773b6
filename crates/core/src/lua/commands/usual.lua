-- usual: run many commands in order, each on a lock, until one needs more than the usual ways.
-- Follows hand_over.lua; rest.lua goes on with the first command that needs more, behind the parts that
-- know the queue.
--
-- KEYS  four for each command: lease, queue, waiters, withdrawn
-- ARGV  1 and 2 as in head.lua; then for each command its word and arguments:
--       try        acquisition, ttl in ms, watermark (the largest token that the asker has seen, or
--                  0), label
--       acquire, heartbeat   as try, and number of the heartbeat, claim window in ms
--       release    acquisition, fence, ms to keep the lock closed (0 to end the lease)
--       next       acquisition, fence; and as acquire for the next acquisition of the same runtime
--       hold       acquisition, fence, holds, number of the change, ttl in ms
--       withdraw   acquisition, life of the mark in ms
-- Returns  for each command, in order: '<first> <last>' for a grant for the ttl asked for, with
--          nobody waiting and no counter behind; 1 for a lease that was ended, for which nobody
--          waited; otherwise as `ask`, `pass_on`, `keep`, `set_holds` and `withdraw`, or {'refused',
--          error}, and then nothing was written for this command
--
-- Why: what waits for a connection at one moment travels as one call, which costs client and server
-- a fraction of many calls. A command that fails spoils only its own answer. These few lines serve
-- most commands; the functions that serve the others cost a script time even if none is called.
local answers, at, arg, count = {}, 1, 3, #KEYS / 4
-- When a lease of this ttl ends, and until when its hash must live; computed once for the ttl.
local ends

-- Runs one of the usual ways of a contended lock. A key of another type is found before anything is
-- written, and left to the general ways; any other failure is the answer.
local function attempt(way, at, arg)
  local ok, answer = pcall(way, at, arg)
  if ok then return answer end
  if not is_foreign(answer) then return {err = words(answer)} end
end

while at <= count do
  local word, key, size, answer = ARGV[arg], KEYS[4 * at - 3], nil, nil
  if word == 'release' then
    local row = redis.pcall('HMGET', key, 'holder', 'fence', 'more', 'end')
    if row[1] == ARGV[arg + 1] and row[2] == ARGV[arg + 2] and ARGV[arg + 3] == '0' and row[4]
      and millis < row[4] then
      if row[3] then
        answer = attempt(hand_over, at, arg)
      else
        answer = redis.pcall('HDEL', key, 'holder', 'fence', 'end', 'since', 'label')
        if type(answer) == 'number' then answer = 1 end
      end
    end
    size = 4
  elseif word == 'next' then
    answer, size = attempt(hand_over, at, arg), 9
  elseif word == 'acquire' or word == 'try' then
    local row = redis.pcall('HMGET', key, 'counter', 'holder', 'more', 'expires')
    local ttl = ARGV[arg + 2]
    if row[3] and row[2] then
      if word == 'acquire' then answer = attempt(line_up, at, arg) end
    elseif row[1] and not row[2] and not row[3] and (tonumber(ttl) or 0) > 0 and retention > 0 then
      if not (ends and ends.ttl == ttl) then
        ends = {ttl = ttl, lease = after(ttl), hash = after(math.max(retention, ttl))}
      end
      local first, newest, behind = mint(row[1], ARGV[arg + 3])
      if behind == 0 and row[4] and row[4] >= ends.hash then
        answer = redis.pcall('HSET', key, 'counter', newest, 'holder', ARGV[arg + 1],
          'fence', first, 'end', ends.lease, 'since', micros, 'label', ARGV[arg + 4])
        if type(answer) == 'number' then answer = first .. ' ' .. newest end
      end
    end
    size = word == 'try' and 5 or 7
  end
  if not answer then break end
  if type(answer) == 'table' and answer.err then answer = {'refused', answer.err} end
  answers[at] = answer
  at, arg = at + 1, arg + size
end
if at > count then return answers end
