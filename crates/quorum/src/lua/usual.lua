-- usual: runs the commands of a call; itself the vote for a free lock, and the end of a lease that nobody waits for.
-- Follows head.lua, and the slow path, which stands in the function `general` of scripts.rs.
--
-- KEYS  as head.lua
-- ARGV  as head.lua
-- Returns  as head.lua
--
-- Why: these few lines serve most commands. To make a function costs a server as much as some arguments, so the slow
-- path is made when a command needs it. A command that fails spoils only its own answer.
-- ADR 0024
local answers, arg, count = {}, 2, #KEYS - 1
-- The boot mark, when it was looked at, and how long until the node counts, ms: -1 without a mark, nil if it does.
local boot, out
-- What commands have in common; and of a usual grant, what stands behind its tokens, until when its key must live at
-- least, and how far its ballot may be away.
local common, grant, least, tolerance
local run, millis
-- Whether all answers are numbers.
local is_plain = true

for at = 1, count do
  local it, answer, size = ARGV[arg], nil, 1
  local kind = byte(it)
  if kind >= 48 and kind <= 57 then
    common, grant, arg = it, nil, arg + 1
    it = ARGV[arg]
    kind = byte(it)
  end
  if kind == 32 and byte(it, -1) == 32 then
    local key = KEYS[at + 1]
    millis = millis or string.format('%d', now_ms)
    local text, from = call('GETRANGE', key, '0', TO), 33 + #it
    -- Both tokens have 16 digits, and its time as well: so this is where its end is.
    if type(text) == 'string' and string.find(text, it, 34, true) == 34 and sub(text, 1, 3) == 'v5 '
      and byte(text, from + 34) == 32 and byte(text, from + 51) == 32
      and millis < sub(text, from + 52, from + 64) then
      answer = call('SET', key, sub(text, 1, 33), 'KEEPTTL').ok and '1'
    end
  else
    if not boot then
      boot = call('GETRANGE', KEYS[1], '0', '20')
      local counts = type(boot) == 'string' and boot ~= '' and tonumber(string.match(boot, '^%d+') or 0)
      if not counts then out = -1 elseif counts > now_ms then out = counts - now_ms end
    end
    if kind == 32 and not out then
      if not grant then
        local retention, ttl = sub(ARGV[1], 1, 13), sub(common, 1, 8)
        grant = string.format(' %d %d 1/0 ', now, now_ms + 1 + ttl) .. sub(common, 19)
        least = string.format('%d', now_ms + 1 + (retention > '00000' .. ttl and retention or ttl))
        tolerance = tonumber(sub(ARGV[1], 15, 24))
      end
      local key, ballot = KEYS[at + 1], sub(it, -16)
      local text = call('GETRANGE', key, '0', TO)
      if type(text) == 'string' and #text == 33 and sub(text, 1, 3) == 'v5 ' and byte(text, 20) == 32 then
        local counter, expires, off = sub(text, 4, 19), sub(text, 21), ballot - now
        if counter < ballot and off <= tolerance and -off <= tolerance and least <= expires then
          local set = call('SET', key, 'v5 ' .. ballot .. ' ' .. expires .. it .. ' ' .. counter .. grant, 'KEEPTTL')
          if set.ok then answer = counter end
        end
      end
    end
  end
  if not answer then
    run = run or general(now, now_ms)
    answer, size = run(it, at, arg, common, out)
    is_plain = is_plain and type(answer) ~= 'table'
  end
  answers[at] = answer
  arg = arg + size
end
return is_plain and table.concat(answers, ' ') or answers
