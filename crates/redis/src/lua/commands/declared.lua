-- declared: the keys of commands of one call, which declares them. Follows head.lua, and stands before
-- usual.lua.
--
-- KEYS  as usual.lua
-- ARGV  as usual.lua
-- Returns  nothing: it goes on to the part that follows
--
-- Why: gathered.lua has the same names for keys that are not declared.
local leases, stride, shift, count, arg = KEYS, 4, -3, #KEYS / 4, 3
