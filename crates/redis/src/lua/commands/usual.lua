-- usual: run many commands in order, each on a lock. Follows head.lua, declared.lua, and the other parts,
-- which stand in the functions `contended` and `general` of scripts.rs; or head.lua and gathered.lua, which
-- says what is different then. It is the fast path of a free lock, and of the release of one that nobody
-- waits for. docs/protocol.md has the rule of each command.
--
-- KEYS  four for each command: lease, queue, waiters, withdrawn
-- ARGV  1 and 2 as in head.lua; then for each command its word and arguments:
--       as         ttl in ms, claim window in ms, label, with a '~' before it if the lock may be
--                  kept idle; no command, but what those behind it mean
--       try        acquisition, watermark (the largest token that the asker has seen, or 0)
--       acquire, heartbeat   as try, and number of the heartbeat
--       release    acquisition, fence
--       keep       acquisition, fence, ms to keep the lock closed
--       next       acquisition, fence; and as acquire for the next acquisition of the same runtime
--       read-try, read-acquire, read-heartbeat, read-next   the same for one that asks to read
--       hold       acquisition, fence, holds, number of the change, ttl in ms
--       withdraw   acquisition, life of the mark in ms
-- Returns  for each command, in order: '<first> <last>' for a grant for the ttl asked for, with
--          nobody waiting and no counter behind; 1 for a lease that was ended, for which nobody
--          waited; otherwise as `ask`, `pass_on`, `keep`, `set_holds` and `withdraw`, or {'layout', version},
--          or {'refused', error}; then nothing was written for this command, but that a withdrawal may have ended its
--          grant, or a right is missing that preflight.lua has tested
--
-- Why: what waits for a connection at one moment travels as one call, which costs client and server
-- a fraction of many calls. A command that fails spoils only its own answer. These few lines serve
-- most commands. The others are functions: to make one costs a server as much as an argument, even if
-- it is never called.
-- ADR 0024
local answers, at = {}, 1
local call, sub = redis.pcall, string.sub
-- How the text of a lock begins: without flags, and with that of marks alone.
local PLAIN, MARKED = 'v4 x------- ', 'v4 x---m--- '
-- The times of a usual lease, its grant and its end, and until when its key must live at least; nil without a ttl or
-- a retention.
local times, least
-- The other paths, when a command has needed them.
local quick, load_general, general

while at <= count do
  if ARGV[arg] == 'as' then
    ttl, window, label, times = ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3], nil
    arg = arg + 4
    local life = tonumber(ttl) or 0
    if life > 0 and retention > 0 then
      early = early or string.format('%d', now - 1023)
      times = ' ' .. micros .. ' ' .. string.format('%d', now_ms + 1 + life) .. ' '
      least = string.format('%d', now_ms + 1 + (life > retention and life or retention))
    end
  end

  local word, key, size, text, marks, answer = ARGV[arg], leases[stride * at + shift], 3, nil, '', nil
  if word ~= 'hold' and word ~= 'keep' and word ~= 'withdraw' then
    text = call('GETRANGE', key, '0', TO)
    if type(text) ~= 'string' or #text > LONGEST then text = nil end
    -- Marks of withdrawals go out of the text; those of the asker are left to the slow path.
    if text and sub(text, 8, 8) == 'm' and string.find(text, '^ %d+$', -14) then
      if millis < sub(text, -13) then marks = sub(text, -14) end
      text = sub(text, 1, 7) .. '-' .. sub(text, 9, -15)
      local asks = marks ~= '' and word ~= 'release' and ARGV[word == 'next' and arg + 3 or arg + 1]
      -- Without declared keys, this is left to a call that has them.
      if asks and (leases ~= KEYS or call('ZSCORE', KEYS[4 * at], asks)) then text = nil end
    end
  end
  if word == 'release' then
    if text and sub(text, 1, 12) == PLAIN and sub(text, 44, 60) == ARGV[arg + 2] .. ' '
      and sub(text, 92, 92 + #ARGV[arg + 1]) == ARGV[arg + 1] .. ' ' and millis < sub(text, 78, 90) then
      local head = marks == '' and PLAIN or MARKED
      -- A full server refuses this write, but not the slow path.
      answer = call('SET', key, head .. sub(text, 13, 42) .. marks, 'KEEPTTL').ok and 1 or nil
    end
  elseif word == 'acquire' or word == 'try' then
    if times and text and #text == 42 then
      local counter, seen = sub(text, 13, 28), ARGV[arg + 2]
      if counter < micros and sub(text, 1, 12) == PLAIN and string.find(text, '^%d+ %d+$', 13) and sub(text, 30) >= least
        and sub(text, 29, 29) == ' ' and (seen == '0' or #seen == 16 and seen <= counter) then
        local first = counter < early and early or string.format('%d', counter + 1)
        answer = call('SET', key, (marks == '' and PLAIN or MARKED) .. micros .. sub(text, 29) .. ' ' .. first .. times
          .. ARGV[arg + 1] .. ' ' .. label .. marks, 'KEEPTTL')
        answer = answer.ok and first .. ' ' .. micros or {'refused', answer.err}
      end
    end
    size = word == 'try' and 3 or 4
  end

  if not answer then
    if not quick then quick, load_general = contended() end
    answer = quick(text, marks, at, arg)
    if word == 'next' then size = 6 elseif word == 'heartbeat' then size = 4 end
  end
  if not answer then
    if not general then general = load_general() end
    answer, size = general(at, arg)
  end
  answers[at] = answer
  at, arg = at + 1, arg + size
end
return answers
