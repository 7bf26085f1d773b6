-- close: let nobody join a run any more.
--
-- KEYS  1 open run
-- ARGV  1 id of the run
-- Returns  'closed'
--
-- Why: only the run that is meant, for another may have been opened since.
if redis.call('HGET', KEYS[1], 'id') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 'closed'
