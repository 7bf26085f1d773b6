-- touch: write something for replicas to acknowledge. Follows the whole of another script, which stands in
-- a function and has made `answers`; `step` is the distance between two leases in KEYS.
--
-- KEYS  those of the script before
-- ARGV  those of the script before
-- Returns  the answers of the script before
--
-- Why: WAIT counts the copies of the last write of its own connection, from Redis 7.2 on. A repeat of a
-- grant, and a renewal that changes nothing, write nothing; WAIT would answer at once, whatever the replicas
-- have. The first lease that there is, is written as it stands; what is longer than a lock is none. After
-- a GETEX, which is a write of nothing, a full server refuses no write.
-- ADR 0031
if type(answers) ~= 'table' or answers.err then return answers end
for at = 1, #KEYS, step do
  local text = redis.pcall('GETRANGE', KEYS[at], '0', '512')
  if type(text) == 'string' and text ~= '' and #text <= 512 then
    redis.pcall('GETEX', KEYS[at])
    redis.call('SET', KEYS[at], text, 'KEEPTTL')
    break
  end
end
return answers
