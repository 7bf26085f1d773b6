-- tell: messages to runtimes. Follows grant.lua.
--
-- KEYS  those of the script that follows
-- ARGV  those of the script that follows
-- Returns  nothing: it goes on to the part that follows
--
-- Why: a message on a plain channel reaches every node of a Cluster, one on a sharded channel only the node that
-- owns the slot of the channel. So a node of a Cluster is given a hash tag of a slot of its own, and tells a runtime
-- that listens there on '<channel>{<tag>}'. If nobody heard that, the runtime listens elsewhere: it is told on its plain
-- channel. A missing right must not fail the script after its writes.

-- The name in the key of a lease, as keys.rs writes it: between the first brace, because a namespace has none, and
-- '}:lease'.
local function name_of(key)
  return string.sub(key, string.find(key, '{', 1, true) + 1, -8)
end

-- Redis knows sharded channels from 7.0 on, as it does its own version.
-- ADR 0030
local function tell(runtime, message)
  local prefix, tag = channels, string.find(channels, '{', 1, true)
  if tag then
    prefix = string.sub(channels, 1, tag - 1)
    if redis.REDIS_VERSION_NUM then
      local heard = redis.pcall('SPUBLISH', prefix .. runtime .. string.sub(channels, tag), message)
      if type(heard) == 'number' and heard > 0 then return end
    end
  end
  redis.pcall('PUBLISH', prefix .. runtime, message)
end
