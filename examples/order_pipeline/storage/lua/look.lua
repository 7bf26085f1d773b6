-- look: read a shelf.
--
-- KEYS  1 shelf
-- ARGV  none
-- Returns  {orders done, stock}
--
-- Why: behind the gate, so that whoever reads has shut out the holders before.
local row = redis.call('HMGET', KEYS[1], 'next', 'stock')
return {row[1] or '0', row[2] or '0'}
