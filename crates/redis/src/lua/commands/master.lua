-- master: refuse on a replica that takes writes (`replica-read-only no`). Stands before the whole of another script,
-- in calls of a connection that has not proved for a while that its server is a master, see liveness.rs.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the script that follows; or an error that begins with READONLY
--
-- Why: a master that becomes a replica keeps its connections, and other replicas refuse writes by themselves. A user
-- who may not run INFO is not asked about: then nothing is known.
-- ADR 0033
do
  local told = redis.pcall('INFO', 'replication')
  if type(told) == 'string' and string.find(told, '\nrole:slave', 1, true) then
    return redis.error_reply('READONLY the server has become a replica, and takes writes all the same')
  end
end
