use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use leasehold::connect_store;
use leasehold_core::{
    Clock, Entropy, Instant, LockName, LockStore, RuntimeId, RuntimeLabel, SystemClock,
    SystemEntropy, Ttl,
    store::{Heartbeat, Listener, Push},
};
use leasehold_redis::RedisConfig;
use tokio::{runtime::Handle, task::JoinSet};

use super::{lock::Lock, step::Step};
use crate::Failure;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A place stays as long as a part of the benchmark takes.
const CLAIM_WINDOW: Duration = Duration::from_secs(600);

/// As long as a label usually is.
const LABEL: &str = "host-0001/12345/bench";

/// Runtimes that send commands through one store, and the locks that these are about.
#[derive(Debug)]
pub(crate) struct Actors {
    pub(super) store: Arc<dyn LockStore>,
    pub(super) runtimes: [RuntimeId; 3],
    pub(super) label: RuntimeLabel,
    pub(super) ttl: Ttl,
    _ear: Arc<Ear>,
}

/// Hears the grants of all runtimes, which nobody here waits for.
#[derive(Debug)]
struct Ear;

impl Listener for Ear {
    fn on_push(&self, _push: Push) {}
}

impl Actors {
    /// Connects to an address.
    pub(crate) async fn connect(address: &str) -> Result<Self, Failure> {
        let runtimes = std::array::from_fn(|_| SystemEntropy.runtime_id());
        let (config, clock) = (RedisConfig::new(address)?, Arc::new(SystemClock));
        let store = connect_store(&config, clock, Handle::current(), runtimes[0]).await?;
        let ear = Arc::new(Ear);
        for runtime in runtimes {
            let weak: Weak<Ear> = Arc::downgrade(&ear);
            store.listen(runtime, weak);
        }
        let (label, ttl) = (RuntimeLabel::new(LABEL), Ttl::new(CLAIM_WINDOW)?);
        Ok(Self { store, runtimes, label, ttl, _ear: ear })
    }

    /// Locks with names of nine bytes, in as many parts as there will be tasks.
    pub(crate) fn locks(count: usize, parts: usize) -> Result<Locks, Failure> {
        let mut all = vec![Vec::new(); parts];
        for number in 0..count {
            all[number % parts].push(Lock::new(LockName::new(format!("b{number:08}"))?));
        }
        Ok(Locks(all))
    }
}

/// A heartbeat of a number.
pub(super) fn beat(number: u64) -> Heartbeat {
    Heartbeat { number, claim_window: CLAIM_WINDOW }
}

/// Until when the answer to a command has to come that is sent now.
pub(super) fn deadline() -> Instant {
    SystemClock.now() + PATIENCE
}

/// Locks in parts, for as many tasks.
#[derive(Debug)]
pub(crate) struct Locks(Vec<Vec<Lock>>);

impl Locks {
    /// Takes a step with all of them, the parts side by side.
    pub(crate) async fn step(&mut self, actors: &Arc<Actors>, step: Step) -> Result<(), Failure> {
        let mut running = JoinSet::new();
        for mut locks in self.0.drain(..) {
            let actors = Arc::clone(actors);
            running.spawn(async move {
                step.run(&actors, &mut locks).await?;
                Ok::<_, Failure>(locks)
            });
        }
        while let Some(done) = running.join_next().await {
            self.0.push(done??);
        }
        Ok(())
    }
}
