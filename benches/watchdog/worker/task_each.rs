#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::RuntimeId;
use leasehold_core::{Entropy, SystemEntropy};
use redis::{AsyncConnectionConfig, Client, RedisError, aio::MultiplexedConnection};
use tokio::{
    runtime::Runtime,
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};

use super::{AT_ONCE, options::Options, tally::Tally, window::Acquisition};
use crate::{Failure, library, output::Output};

const NAMESPACE: &str = "control";
const LABEL: &str = "host/1/bench";

/// Holds the leases without the library: a task for each sleeps and renews, all on one multiplexed
/// connection.
pub(super) fn run(
    runtime: &Runtime,
    options: &Options,
    tally: &Arc<Tally>,
) -> Result<Output, Failure> {
    let shared = Arc::new(Shared {
        connection: runtime.block_on(connect(&options.redis))?,
        entropy: SystemEntropy,
        ttl: options.ttl,
        tally: Arc::clone(tally),
        lost: AtomicU64::new(0),
    });
    let acquisition = Acquisition::begin();
    let id = shared.entropy.runtime_id();
    // The tasks run on until the runtime is shut down.
    runtime.block_on(acquire(&shared, id, options.leases))?;
    acquisition.end(options, tally, || shared.lost.load(Ordering::Relaxed))
}

/// Without the client library's own timeout: every renewal has one of its own.
async fn connect(url: &str) -> Result<MultiplexedConnection, RedisError> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await
}

async fn acquire(shared: &Arc<Shared>, id: RuntimeId, leases: usize) -> Result<(), Failure> {
    let mut acquiring = JoinSet::new();
    for first in 0..AT_ONCE.min(leases) {
        let shared = Arc::clone(shared);
        acquiring.spawn(async move {
            for number in (first..leases).step_by(AT_ONCE) {
                let lease = Lease::acquire(&shared, id, number).await?;
                tokio::spawn(lease.keep(Arc::clone(&shared)));
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(acquired) = acquiring.join_next().await {
        acquired??;
    }
    Ok(())
}

/// What the tasks share.
struct Shared {
    connection: MultiplexedConnection,
    entropy: SystemEntropy,
    ttl: Duration,
    tally: Arc<Tally>,
    lost: AtomicU64,
}

/// What a task needs to renew.
struct Lease {
    key: String,
    id: String,
    fence: u64,
    until: Instant,
}

impl Lease {
    async fn acquire(shared: &Shared, runtime: RuntimeId, number: usize) -> Result<Self, Failure> {
        let (name, id) = (Options::name(number), format!("{runtime}:{number}"));
        let until = Instant::now() + shared.ttl;
        let mut call = library::command(NAMESPACE, &name);
        let millis = shared.millis();
        call.arg("as").arg(millis).arg(millis).arg(LABEL).arg("try").arg(&id).arg(0);
        let answer = call.invoke_async(&mut shared.connection.clone()).await?;
        let fence = library::granted(&answer, "granted")?.parse()?;
        Ok(Self { key: format!("{NAMESPACE}:{{{name}}}:lease"), id, fence, until })
    }

    /// Renews until the lease is lost.
    async fn keep(mut self, shared: Arc<Shared>) {
        // The leases part company as those of the library do, so that neither makes bursts.
        let mut due = Instant::now() + (shared.ttl / 3).mul_f64(1.0 - shared.entropy.fraction());
        loop {
            sleep_until(due).await;
            let sent_at = Instant::now();
            shared.tally.sent(sent_at - due);
            let answer = timeout(shared.ttl / 6, self.renew(&shared)).await;
            let left = answer.ok().and_then(Result::ok).map(|left| left[0]);
            shared.tally.answered(left.is_some_and(|left| left > 0));
            match left {
                Some(1..) => {
                    self.until = sent_at + shared.ttl;
                    due = sent_at + shared.ttl / 3;
                }
                None if Instant::now() < self.until => due = Instant::now() + shared.ttl / 12,
                _ => {
                    shared.lost.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            }
        }
    }

    async fn renew(&self, shared: &Shared) -> Result<[i64; 1], RedisError> {
        let mut call = library::renew().key(&self.key);
        call.arg(library::RETENTION).arg(format!("{NAMESPACE}:runtime:"));
        call.arg(&self.id).arg(self.fence).arg(shared.millis());
        call.invoke_async(&mut shared.connection.clone()).await
    }
}

impl Shared {
    fn millis(&self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX)
    }
}
