use std::sync::{Arc, Mutex, PoisonError};

use redis::{
    AsyncConnectionConfig, Client, IntoConnectionInfo, Script, aio::MultiplexedConnection,
};

use super::{Fenced, Pairs, fenced::ACQUIRE};
use crate::Failure;

/// How long the server waits for a replica, in milliseconds.
const LIMIT: u32 = 1_000;

/// The least that an acquire can be that waits for a replica: a minimal script with a fence and
/// `WAIT`, sent together on a connection that nobody else uses meanwhile.
///
/// `WAIT` counts what was written before it on its own connection, and holds that connection up. The
/// release waits for nobody and is that of the fenced scripts.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    fenced: Fenced,
    idle: Arc<Mutex<Vec<MultiplexedConnection>>>,
    digest: Arc<str>,
}

impl Waiting {
    /// Connects as often as there are tasks.
    pub(crate) async fn connect(url: &str, tasks: usize) -> Result<Self, Failure> {
        let info = url.into_connection_info()?;
        let settings = info.tcp_settings().clone().set_nodelay(true);
        let client = Client::open(info.set_tcp_settings(settings))?;
        let mut idle = Vec::new();
        for _ in 0..tasks {
            let config = AsyncConnectionConfig::new().set_response_timeout(None);
            idle.push(client.get_multiplexed_async_connection_with_config(&config).await?);
        }
        let script = Script::new(ACQUIRE);
        if let Some(connection) = idle.first_mut() {
            script.load_async(connection).await?;
        }
        let digest = script.get_hash().into();
        Ok(Self { fenced: Fenced::connect(url).await?, idle: Arc::new(Mutex::new(idle)), digest })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<MultiplexedConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pairs for Waiting {
    async fn pair(&self, name: &str, number: usize) -> Result<(), Failure> {
        let mut connection = self.idle().pop().ok_or("more tasks than connections")?;
        let [lease, counter] = Fenced::keys(name);
        let mut both = redis::pipe();
        both.cmd("EVALSHA").arg(&*self.digest).arg(2).arg(lease).arg(counter);
        both.arg(number).arg(30_000);
        both.cmd("WAIT").arg(1).arg(LIMIT);
        let (fence, replicas): (Option<u64>, u32) = both.query_async(&mut connection).await?;
        self.idle().push(connection);
        if fence.is_none() || replicas == 0 {
            return Err(format!("fence {fence:?}, {replicas} replicas").into());
        }
        self.fenced.release(name, number).await
    }
}
