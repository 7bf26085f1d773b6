use std::sync::Arc;

use redis::{Script, aio::MultiplexedConnection};

use super::{connection, connections};
use crate::Failure;

/// Takes a free lock, and counts its fence up.
pub(super) const ACQUIRE: &str = "
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end
return false";

/// Ends the lease of an owner.
const RELEASE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";

/// The least that a lock with a fence needs: the fence is lost when Redis loses the counter, a
/// repeated acquire does not know its own lease, and nobody queues.
#[derive(Debug, Clone)]
pub(crate) struct Fenced {
    connections: Vec<MultiplexedConnection>,
    scripts: Arc<[Script; 2]>,
}

impl Fenced {
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        let scripts = [ACQUIRE, RELEASE].map(Script::new);
        Ok(Self { connections: connections(url).await?, scripts: Arc::new(scripts) })
    }

    /// Takes a free lock, and tells its fence. The number is another one for each lease of a name.
    pub(crate) async fn acquire(&self, name: &str, number: usize) -> Result<u64, Failure> {
        let [acquire, _] = &*self.scripts;
        let [lease, counter] = Self::keys(name);
        let mut call = acquire.key(&lease);
        call.key(&counter).arg(number).arg(30_000);
        Ok(call.invoke_async(&mut connection(&self.connections, name)).await?)
    }

    /// Ends the lease of a number.
    pub(crate) async fn release(&self, name: &str, number: usize) -> Result<(), Failure> {
        let [_, release] = &*self.scripts;
        let mut connection = connection(&self.connections, name);
        let [lease, _] = Self::keys(name);
        let ended: u64 = release.key(&lease).arg(number).invoke_async(&mut connection).await?;
        if ended == 1 { Ok(()) } else { Err("the lease is gone".into()) }
    }

    /// The keys of a lock: its lease and its counter.
    pub(crate) fn keys(name: &str) -> [String; 2] {
        [format!("fenced:{{{name}}}"), format!("fenced:{{{name}}}:fence")]
    }
}
