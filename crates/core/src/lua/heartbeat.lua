-- heartbeat: repeat the acquires of many waiters. Follows queue.lua and ask.lua.
--
-- KEYS  for each name: lease, fence counter, queue, waiters, withdrawal mark of the acquisition
-- ARGV  1 retention of the counters, ms (0: plain counters without TTL)   2 label
--       3 prefix of the channels of runtimes; then for each name:
--       acquisition, ttl in ms, watermark, number of the heartbeat, claim window in ms, name
-- Returns  for each name, in order: as `ask` in ask.lua, or {'foreign', error}
--
-- Why: one command keeps the places of a runtime that waits for many names, and a key that another
-- program overwrote spoils only its own answer. After an error that concerns all names, the changes
-- for the names before it stand, as if each name had its own command.
retention, channels = ARGV[1], ARGV[3]
local answers = {}
for i = 1, #KEYS / 5 do
  local key, arg = 5 * i - 4, 6 * i - 2
  lease, counter, queue, waiters = KEYS[key], KEYS[key + 1], KEYS[key + 2], KEYS[key + 3]
  name = ARGV[arg + 5]
  local asker = {id = ARGV[arg], ttl = ARGV[arg + 1], seen = ARGV[arg + 2], label = ARGV[2],
    heartbeat = ARGV[arg + 3], window = ARGV[arg + 4]}
  local ok, answer = pcall(ask, asker, KEYS[key + 4])
  local failure = type(answer) == 'table' and answer.err or not ok and tostring(answer)
  if failure then
    if not string.find(failure, 'WRONGTYPE', 1, true) then return redis.error_reply(failure) end
    answer = {'foreign', failure}
  end
  answers[i] = answer
end
return answers
