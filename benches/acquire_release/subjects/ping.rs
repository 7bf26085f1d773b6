use redis::{aio::MultiplexedConnection, cmd};

use super::{Pairs, connection, connections};
use crate::Failure;

/// No lock: what two round trips cost.
#[derive(Debug, Clone)]
pub(crate) struct Ping(Vec<MultiplexedConnection>);

impl Ping {
    pub(crate) async fn connect(url: &str) -> Result<Self, Failure> {
        Ok(Self(connections(url).await?))
    }
}

impl Pairs for Ping {
    async fn pair(&self, name: &str, _number: usize) -> Result<(), Failure> {
        let mut connection = connection(&self.0, name);
        for _ in 0..2 {
            cmd("PING").exec_async(&mut connection).await?;
        }
        Ok(())
    }
}
