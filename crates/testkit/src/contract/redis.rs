use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Clock, Entropy, FencePolicy, FenceSettings, FenceToken, Instant, LockName, LockStore,
    RedisConfig, RedisStore, SystemClock, SystemEntropy,
};
use tokio::runtime::Handle;

use super::subject::{Capability, Snapshot, StoreUnderTest, Task};
use crate::RedisServer;

/// A store on a private server; time passes there by a script that shortens every life.
#[derive(Debug)]
pub struct RedisSubject {
    server: RedisServer,
    store: Arc<RedisStore>,
    policy: FencePolicy,
}

/// Ages every key by ARGV[1] ms and every lease's beginning with it, as the clock would.
const PASS: &str = "
for _, key in ipairs(redis.call('KEYS', '*')) do
  local left = redis.call('PTTL', key)
  if left >= 0 then
    if left <= tonumber(ARGV[1]) then
      redis.call('DEL', key)
    else
      redis.call('PEXPIRE', key, left - ARGV[1])
      if redis.call('TYPE', key).ok == 'hash' and redis.call('HEXISTS', key, 'since') == 1 then
        redis.call('HINCRBY', key, 'since', '-' .. ARGV[1] .. '000')
      end
    end
  end
end
return 'passed'";

/// Every key with its content, sorted, and the milliseconds that it has left.
const SNAPSHOT: &str = "
local all = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local parts
  if redis.call('TYPE', key).ok == 'hash' then
    local row, fields = redis.call('HGETALL', key), {}
    for i = 1, #row, 2 do fields[#fields + 1] = row[i] .. '=' .. row[i + 1] end
    table.sort(fields)
    parts = table.concat(fields, ' ')
  else
    parts = redis.call('GET', key)
  end
  all[#all + 1] = key
  all[#all + 1] = parts
  all[#all + 1] = tostring(redis.call('PTTL', key))
end
return all";

impl RedisSubject {
    /// A store on a server of its own.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start or lets nobody in.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the server.
    pub async fn new(fencing: FenceSettings) -> Self {
        let server = RedisServer::start();
        let config = RedisConfig::new(&server.url()).expect("the server's address is one");
        let store = RedisStore::connect(
            &config.fencing(fencing),
            Arc::new(SystemClock),
            Handle::current(),
            SystemEntropy::new().runtime_id(),
        )
        .await
        .expect("a private server lets everybody in");
        Self { server, store: Arc::new(store), policy: fencing.policy }
    }

    /// The server.
    pub fn server(&self) -> &RedisServer {
        &self.server
    }

    /// The store itself.
    pub fn redis(&self) -> &Arc<RedisStore> {
        &self.store
    }
}

impl StoreUnderTest for RedisSubject {
    fn start(fencing: FenceSettings) -> Task<'static, Box<dyn StoreUnderTest>> {
        Box::pin(async move { Box::new(Self::new(fencing).await) as _ })
    }

    fn capabilities(&self) -> &'static [Capability] {
        &Capability::ALL
    }

    fn store(&self) -> Arc<dyn LockStore> {
        Arc::clone(&self.store) as _
    }

    fn deadline(&self) -> Instant {
        SystemClock.now() + Duration::from_secs(20)
    }

    fn slack(&self) -> Duration {
        Duration::from_secs(20)
    }

    fn pass(&self, time: Duration) -> Task<'_> {
        Box::pin(async move {
            self.server.command(&["EVAL", PASS, "0", &time.as_millis().to_string()]);
        })
    }

    fn lose_all(&self) -> Task<'_> {
        Box::pin(async move { self.server.flush_all() })
    }

    fn lose_counter<'a>(&'a self, name: &'a LockName) -> Task<'a> {
        Box::pin(async move {
            let lost: u32 = self.server.query(&["DEL", &self.store.keys().counter(name)]);
            assert_eq!(lost, 1, "{name} has a counter to lose");
        })
    }

    fn restart(&self) -> Task<'_> {
        Box::pin(async move { self.server.restart() })
    }

    fn exhaust<'a>(&'a self, name: &'a LockName) -> Task<'a> {
        Box::pin(async move {
            let last_but_one = (FenceToken::MAX - 1).to_string();
            let key = self.store.keys().counter(name);
            self.server.command(&["SET", &key, &last_but_one, "PX", "604800000"]);
        })
    }

    fn snapshot(&self) -> Task<'_, Snapshot> {
        Box::pin(async move {
            let all: Vec<String> = self.server.query(&["EVAL", SNAPSHOT, "0"]);
            let piece = |part: &[String]| {
                let left = part[2].parse().expect("PTTL is a number, and no key lives for ever");
                (part[0].clone(), (part[1].clone(), Duration::from_millis(left)))
            };
            all.chunks(3).map(piece).collect()
        })
    }

    fn left_behind(&self) -> Task<'_, Vec<String>> {
        Box::pin(async move {
            let mut immortal = self.server.keys_without_ttl();
            if self.policy == FencePolicy::Counter {
                immortal.retain(|key| !key.ends_with(":fence"));
            }
            immortal
        })
    }
}
