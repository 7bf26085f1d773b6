use redis::{Value, aio::MultiplexedConnection};

use super::{Pairs, connection, connections};
use crate::{Failure, library};

/// The scripts of the library, called without it.
#[derive(Debug, Clone)]
pub(crate) struct Floor {
    connections: Vec<MultiplexedConnection>,
}

impl Floor {
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self { connections: connections(url).await? })
    }
}

impl Pairs for Floor {
    /// With the keys and arguments that the library sends for a command alone.
    async fn pair(&self, name: &str, number: usize) -> Result<(), Failure> {
        let mut connection = connection(&self.connections, name);
        let id = format!("00000000-0000-4000-8000-000000000000:{number}");
        let mut acquire = library::command("floor", name);
        acquire.arg("as").arg(30_000).arg(3_000).arg("host/1/bench");
        acquire.arg("acquire").arg(&id).arg(0).arg(number);
        let answer: Value = acquire.invoke_async(&mut connection).await?;
        let fence = library::granted(&answer, "granted")?;
        let mut release = library::command("floor", name);
        release.arg("release").arg(&id).arg(fence);
        let _: Value = release.invoke_async(&mut connection).await?;
        Ok(())
    }
}
