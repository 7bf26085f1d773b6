use std::time::Duration;

use leasehold_testkit::RedisServer;

use crate::{Failure, calls::Calls};

/// Where scenarios run.
pub(crate) struct Bed {
    pub(crate) server: RedisServer,
    pub(crate) calls: Calls,
    /// How many rounds with processes have had their files in the server's folder.
    pub(crate) places: usize,
    /// For how long a subject runs before it is measured.
    pub(crate) warmup: Duration,
    /// For how long it is measured.
    pub(crate) measured: Duration,
}

impl Bed {
    /// Starts a server.
    pub(crate) fn start(quick: bool) -> Result<Self, Failure> {
        let server = RedisServer::builder().tcp().start();
        let calls = Calls::at(server.socket())?;
        let [warmup, measured] = if quick { [50, 50] } else { [500, 1_500] };
        let millis = Duration::from_millis;
        Ok(Self { server, calls, places: 0, warmup: millis(warmup), measured: millis(measured) })
    }
}
