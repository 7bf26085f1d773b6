use redis::{Script, Value, aio::MultiplexedConnection};

use super::{Pairs, connection, connections};
use crate::{Failure, library};

/// For how long the counter of a name stays, in milliseconds; as long as the library's.
const RETENTION: u64 = 604_800_000;

/// The scripts of the library, called without it.
#[derive(Debug, Clone)]
pub(crate) struct Floor {
    connections: Vec<MultiplexedConnection>,
    acquire: &'static Script,
    release: &'static Script,
}

impl Floor {
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        let (acquire, release) = (library::acquire(), library::release());
        Ok(Self { connections: connections(url).await?, acquire, release })
    }
}

impl Pairs for Floor {
    /// With the keys and arguments that the library sends.
    async fn pair(&self, name: &str, number: usize) -> Result<(), Failure> {
        let mut connection = connection(&self.connections, name);
        let id = format!("00000000-0000-4000-8000-000000000000:{number}");
        let (keys, channels) = (library::keys("floor", name), "floor:runtime:");
        let mut acquire = self.acquire.prepare_invoke();
        for key in &keys {
            acquire.key(key);
        }
        acquire.key(library::withdrawn("floor", name, &id));
        acquire.arg(&id).arg(30_000).arg(0).arg(RETENTION).arg("host/1/bench").arg(channels);
        acquire.arg(name);
        let granted: (String, String, String, u64, u64, u64) =
            acquire.invoke_async(&mut connection).await?;
        let mut release = self.release.prepare_invoke();
        for key in &keys {
            release.key(key);
        }
        release.arg(&id).arg(granted.1).arg(0).arg(RETENTION).arg(channels).arg(name);
        let _: Value = release.invoke_async(&mut connection).await?;
        Ok(())
    }
}
