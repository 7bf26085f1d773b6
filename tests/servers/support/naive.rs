use std::{sync::Arc, time::Duration};

use leasehold::{
    AcquisitionId, Fence,
    time::{Clock, Instant, SystemClock},
};
use leasehold_core::{Entropy, SystemEntropy};
use redis::{RedisError, Script, aio::MultiplexedConnection};

/// Takes a free lock and the next number of a plain counter.
const TAKE: &str = "\
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return 0";

/// Gives a lock back that is still ours.
const GIVE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";

/// The lock that everybody writes first: `SET NX PX`, fences of a plain `INCR`, no renewal,
/// validity counted from the reply, and nobody is told of a loss.
#[derive(Debug, Clone)]
pub(crate) struct NaiveLock {
    pub(crate) connection: MultiplexedConnection,
    name: String,
    ttl: Duration,
    ids: Arc<SystemEntropy>,
}

/// What a holder of it believes to have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NaiveHeld {
    pub(crate) lease: AcquisitionId,
    pub(crate) fence: Fence,
    pub(crate) asked_at: Instant,
    pub(crate) until: Instant,
}

impl NaiveLock {
    pub(crate) fn new(connection: MultiplexedConnection, name: &str, ttl: Duration) -> Self {
        Self { connection, name: name.into(), ttl, ids: Arc::new(SystemEntropy) }
    }

    /// The key of the lock; its counter has `:counter` behind that.
    pub(crate) fn key(&self) -> String {
        format!("naive:{{{}}}", self.name)
    }

    /// Tries once; `None` when somebody else has it.
    pub(crate) async fn try_acquire(&mut self) -> Result<Option<NaiveHeld>, RedisError> {
        let lease = AcquisitionId::new(self.ids.runtime_id(), 1);
        let asked_at = SystemClock.now();
        let script = Script::new(TAKE);
        let mut call = script.key(self.key());
        call.key(format!("{}:counter", self.key()));
        call.arg(lease.to_string()).arg(u64::try_from(self.ttl.as_millis()).expect("a time"));
        let fence: u64 = call.invoke_async(&mut self.connection).await?;
        let until = SystemClock.now() + self.ttl;
        Ok(Fence::try_from(fence).ok().map(|fence| NaiveHeld { lease, fence, asked_at, until }))
    }

    /// Lets it live for a ttl from now on, if it is still there.
    pub(crate) async fn renew(&mut self) -> Result<bool, RedisError> {
        let ttl = u64::try_from(self.ttl.as_millis()).expect("a time");
        redis::cmd("PEXPIRE").arg(self.key()).arg(ttl).query_async(&mut self.connection).await
    }

    /// Gives it back; `false` when it was no longer ours.
    pub(crate) async fn release(&mut self, held: &NaiveHeld) -> Result<bool, RedisError> {
        let script = Script::new(GIVE);
        let mut call = script.key(self.key());
        call.arg(held.lease.to_string()).invoke_async(&mut self.connection).await
    }
}
