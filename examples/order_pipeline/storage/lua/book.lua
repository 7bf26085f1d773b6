-- book: write that an order is done.
--
-- KEYS  1 shelf
-- ARGV  1 index of the order   2 booking   3 orders done   4 stock   5 end of the run, Unix ms
-- Returns  'booked'   'again'
--
-- Why: it compares nothing, so that only the lock and the fence keep it right; an order that is
-- booked twice is counted, and fails the audit. A repeat is the same booking: its fence is in it.
local shelf, field = KEYS[1], 'order:' .. ARGV[1]
local before = redis.call('HGET', shelf, field)
if before == ARGV[2] then return 'again' end
if before then redis.call('HINCRBY', shelf, 'twice', 1) end
redis.call('HSET', shelf, field, ARGV[2], 'next', ARGV[3], 'stock', ARGV[4])
redis.call('PEXPIREAT', shelf, ARGV[5])
return 'booked'
