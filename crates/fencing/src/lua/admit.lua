-- admit: move the watermark and nothing else. Follows gate.lua.
--
-- KEYS  1 watermark
-- ARGV  1 fence   2 lease   3 ttl of the watermark, ms (0: none)
-- Returns  {verdict}
--
-- Why: a new holder shuts out the holder before it, although it has nothing to write yet.
return {verdict}
