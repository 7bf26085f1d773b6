use std::sync::Arc;

use redis::{Script, aio::MultiplexedConnection};

use super::{Pairs, connection, connections};
use crate::Failure;

/// Takes a free lock, and counts its fence up.
const ACQUIRE: &str = "
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
}

impl Pairs for Fenced {
    async fn pair(&self, name: &str, number: usize) -> Result<(), Failure> {
        let mut connection = connection(&self.connections, name);
        let (id, [acquire, release]) = (number.to_string(), &*self.scripts);
        let (lease, counter) = (format!("fenced:{{{name}}}"), format!("fenced:{{{name}}}:fence"));
        let mut call = acquire.key(&lease);
        call.key(&counter).arg(&id).arg(30_000);
        let _fence: u64 = call.invoke_async(&mut connection).await?;
        let ended: u64 = release.key(&lease).arg(&id).invoke_async(&mut connection).await?;
        if ended == 1 { Ok(()) } else { Err("the lease is gone".into()) }
    }
}
