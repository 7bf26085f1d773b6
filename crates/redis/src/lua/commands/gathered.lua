-- gathered: the keys of commands that share a call on a node of a Cluster. Follows head.lua, and stands
-- before usual.lua.
--
-- KEYS  none
-- ARGV  1 and 2 as in head.lua; 3 how many commands; the lease of each; then words and arguments as in
--       usual.lua, of `try`, `acquire` and `release` alone
-- Returns  nothing: it goes on to usual.lua, whose answer is 0 here to each command that is not served;
--          then nothing was written for it
--
-- Why: a node refuses a call that declares keys of several slots, but checks each key that a script
-- touches (ADR 0035). The fast path reads one key and then writes the same one. If that slot is not the
-- node's, or on its way and the key is gone, the read is an error, and nothing has been written. All
-- other paths touch several keys, and may meet half of them, so they are not here: those commands are
-- sent again as calls of their own, which declare their keys.
local leases, stride, shift, count = ARGV, 1, 3, tonumber(ARGV[3])
local arg = 4 + count

local function alone() return 0 end

local function contended() return alone end
