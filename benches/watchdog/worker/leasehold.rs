use std::sync::Arc;

use leasehold::{Guard, LockRuntime, redis::RedisConfig, time::SystemClock};
use leasehold_core::{Entropy, SystemEntropy};
use leasehold_redis::RedisStore;
use tokio::{
    runtime::{Handle, Runtime},
    task::JoinSet,
};

use super::{
    AT_ONCE,
    flaky::Flaky,
    options::Options,
    tally::{Listener, Tally},
    window::Acquisition,
};
use crate::{Failure, output::Output};

/// Holds the leases with the library's public API; its watchdog renews them.
pub(super) fn run(
    runtime: &Runtime,
    options: &Options,
    tally: &Arc<Tally>,
) -> Result<Output, Failure> {
    metrics::set_global_recorder(Listener(Arc::clone(tally)))?;
    let locks = runtime.block_on(connect(options))?;
    let acquisition = Acquisition::begin();
    let guards = runtime.block_on(acquire(&locks, options.leases))?;
    let lost = || guards.iter().flatten().filter(|guard| !guard.is_held()).count() as u64;
    let output = acquisition.end(options, tally, lost);
    // They go with the process: a hundred thousand releases are another benchmark.
    guards.into_iter().flatten().for_each(std::mem::forget);
    output
}

async fn connect(options: &Options) -> Result<LockRuntime, Failure> {
    let builder = LockRuntime::builder().ttl(options.ttl);
    let Some(fails) = options.fails else { return Ok(builder.connect(&options.redis).await?) };
    let (config, clock) = (RedisConfig::new(&options.redis)?, Arc::new(SystemClock));
    let id = SystemEntropy.runtime_id();
    let store = RedisStore::connect(&config, clock, Handle::current(), id).await?;
    Ok(builder.on_store(Arc::new(Flaky::new(Arc::new(store), fails)))?)
}

async fn acquire(locks: &LockRuntime, leases: usize) -> Result<Vec<Vec<Guard>>, Failure> {
    let mut acquiring = JoinSet::new();
    for first in 0..AT_ONCE.min(leases) {
        let (locks, mine) = (locks.clone(), (first..leases).step_by(AT_ONCE));
        acquiring.spawn(async move {
            let mut guards = Vec::with_capacity(mine.len());
            for number in mine {
                guards.push(locks.lock(Options::name(number))?.acquire().await?);
            }
            Ok::<_, Failure>(guards)
        });
    }
    let mut all = Vec::new();
    while let Some(guards) = acquiring.join_next().await {
        all.push(guards??);
    }
    Ok(all)
}
