-- boot: the mark by which a node of a quorum knows whether it has all that it ever accepted.
--
-- KEYS  1 boot mark
-- ARGV  1 id of the server's run
--       2 how long a node that lost its data stays out, ms
--       3 the longest ttl of the asker, ms
--       4 1 if the server persists every write before it answers, else 0
-- Returns  {ms until the node counts, the longest ttl that any runtime told, ms, 1 if the node had lost data},
--          or an error for a text that is too long for a mark
--
-- Why: the mark is lost with the data, so that a node without one has lost data or is new. A new run may
-- have come back from an old snapshot; it has not if the run before persisted every write before its answer,
-- for as long as it was looked at: how the new run is set says nothing of that. Either way the node stays out
-- until no lease can be left that it forgot. The mark: '<counts from, ms> <longest ttl, ms> <run>', where
-- '/always' behind a run means that it persists every write, and so does the run after it. It has no time to live.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- No mark is longer than 256 bytes. What is longer is foreign, and is not replaced: to free it may take long.
local text = redis.call('GETRANGE', KEYS[1], '0', '256')
if #text > 256 then return redis.error_reply('WRONGTYPE the text is not the boot mark of a quorum') end
local counts, longest, run = string.match(text, '^(%d+) (%d+) (%S+)$')
local most = math.max(tonumber(longest or 0), tonumber(ARGV[3]))
local kept = string.match(run or '', '^(.+)/always$')
local is_new = (kept or run) ~= ARGV[1]
local has_lost = 0
if not counts or is_new and not (kept and ARGV[4] == '1') then
  has_lost = 1
  counts = math.max(tonumber(counts or 0), now + tonumber(ARGV[2]))
end
local always = ARGV[4] == '1' and (is_new or kept) and '/always' or ''
local wanted = string.format('%.0f %.0f ', counts, most) .. ARGV[1] .. always
if wanted ~= text then redis.call('SET', KEYS[1], wanted) end
return {math.max(tonumber(counts) - now, 0), most, has_lost}
