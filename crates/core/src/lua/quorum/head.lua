-- head: what all files of the script have in common that runs many commands in order, each on a lock, on one node of
-- a quorum. A node decides alone; that a majority has decided alike is seen by the asker.
--
-- KEYS  1 boot mark of the node, see boot.lua; then for each command the lease of its lock, whose other keys follow
--       from that: '...:waiters' and '...:withdrawn' in place of '...:lease'
-- ARGV  1 retention of the counters, ms
--       2 prefix of the channels of runtimes
--       3 tolerance of clocks, µs
--       then for each command its word and arguments:
--       as         ttl in ms, label, with a '~' before it if the lock may be kept idle; no command,
--                  but what those behind it mean
--       try        acquisition, attempt, ballot; an ask of one that does not wait
--       ask        acquisition, attempt, ballot, since when it waits in µs (0: it does not wait), for how
--                  long its place is remembered in ms
--       settle     acquisition, attempt, fence
--       renew      acquisition, attempt, fence, ttl in ms
--       spread     acquisition, attempt, fence, token before its block, holds, number of their change
--       hold       acquisition, attempt, holds, number of the change, ttl in ms
--       free       acquisition, attempt; an end that leaves no mark
--       end        acquisition, attempt (0: any), fence (0: any), life of a mark in ms (0: none)
--       keep       acquisition, attempt (0: any), fence (0: any), ms to keep the lock closed
--       withdraw   acquisition, life of the mark in ms
--       force      acquisition, fence
--       pass       acquisition (of no meaning), fence: no token up to it is accepted any more
--       inspect    acquisition (of no meaning)
-- Returns  for each command, in order: a text, which is the last token before the block of a grant for the
--          whole ttl whose ballot was accepted; or a number, which is the ms left, or 1 for a lease that was
--          ended, or 0 for a lease that is not there; or
--          {'granted', before, accepted (1 or 0), least acceptable number, ms left, others wait (1 or 0)}
--          {'busy', ms left, keeps (1 or 0), older waiters, acquisition that holds or ''}
--          {'settled', ms left} for a lease that others wait for,
--          {'withdrawn', ended a grant (1 or 0)}, {'kept', ms left}, {'ended', counter},
--          {'free', counter}, {'held', ...}, {'out', ms until the node counts; -1: it has no boot mark},
--          {'layout', version}, {'refused', error}
--
--
-- Why: what waits for a connection at one moment travels as one call. A vote is one of a ballot: a node accepts a
-- number above its counter and near its own clock, and moves its counter there.
--
-- Formats. The string `lease`, layout 4, has parts between single spaces, in decimal digits. A token that is a time
-- has 16 of them and a time in ms 13, so that usual.lua compares and cuts them as texts:
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
-- The hash `waiters` has '<since> <until ms> <life ms> <label>' for each acquisition that waits, where life is for
-- how long it was remembered when it was last heard; and '!' for the one whose turn it is:
-- '<acquisition> <until ms>'. The sorted set `withdrawn` has acquisitions, and attempts '<acquisition>/<attempt>', by
-- the time until which they are dead.
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
-- Of the commands under way.
local ttl, label
