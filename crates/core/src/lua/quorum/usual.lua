-- usual: runs the commands of a call; itself the vote for a free lock, and the end of a lease that nobody waits for.
-- Follows head.lua, and the slow path, which stands in the function `general` of scripts.rs.
--
-- KEYS  as head.lua
-- ARGV  as head.lua
-- Returns  as head.lua
--
-- Why: these few lines serve most commands. To make a function costs a server as much as some arguments, so the slow
-- path is made when a command needs it. A command that fails spoils only its own answer.
local answers, at, arg, count = {}, 1, 4, #KEYS - 1
local run
-- A usual grant behind its tokens, and until when its key must live at least; nil until they are needed. So are
-- the least and the greatest ballot that are accepted, and this moment, as texts of 16 and 13 digits.
local grant, least, low, high, millis

while at <= count do
  local word, size, answer = ARGV[arg], nil, nil
  if word == 'as' then
    ttl, label, grant = tonumber(ARGV[arg + 1]), ARGV[arg + 2], nil
    arg = arg + 3
    word = ARGV[arg]
  end
  if (word == 'try' or word == 'ask') and not out then
    size = word == 'try' and 4 or 6
    if not grant then
      low, high = format('%d', now - tolerance), format('%d', now + tolerance)
      grant = ' ' .. format('%d', now) .. ' ' .. format('%d', now_ms + 1 + ttl) .. ' 1/0 ' .. label
      least = format('%d', now_ms + 1 + (ttl > retention and ttl or retention))
    end
    local key, ballot = KEYS[at + 1], ARGV[arg + 3]
    local text = call('GET', key)
    if type(text) == 'string' and #text == 33 and sub(text, 1, 3) == 'v4 ' and #ballot == 16 then
      local counter = sub(text, 4, 19)
      if counter < ballot and low <= ballot and ballot <= high and least <= sub(text, 21)
        and sub(text, 20, 20) == ' ' then
        local set = call('SET', key, 'v4 ' .. ballot .. sub(text, 20) .. ' ' .. ARGV[arg + 1] .. ' ' .. ARGV[arg + 2]
          .. ' ' .. ballot .. ' ' .. counter .. grant, 'KEEPTTL')
        answer = set.ok and counter or {'refused', set.err}
      end
    end
  elseif word == 'free' then
    size = 3
    millis = millis or format('%d', now_ms)
    local key, its = KEYS[at + 1], ' ' .. ARGV[arg + 1] .. ' ' .. ARGV[arg + 2] .. ' '
    local text, from = call('GET', key), 33 + #its
    -- Both tokens have 16 digits, and its time as well: so this is where its end is.
    if type(text) == 'string' and sub(text, 34, from) == its and sub(text, 1, 3) == 'v4 '
      and sub(text, from + 17, from + 17) == ' ' and sub(text, from + 34, from + 34) == ' '
      and sub(text, from + 51, from + 51) == ' ' and millis < sub(text, from + 52, from + 64) then
      local set = call('SET', key, sub(text, 1, 33), 'KEEPTTL')
      answer = set.ok and 1 or nil
    end
  end
  if not answer then
    run = run or general()
    answer, size = run(word, at, arg)
  end
  answers[at] = answer
  at, arg = at + 1, arg + size
end
return answers
