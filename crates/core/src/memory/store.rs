use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    row::{Keyspace, Part, PlaceRow, Row},
    rules::Step,
};
use crate::{
    clock::{Clock, Instant},
    mutex::Mutex,
    store::{
        Command, FenceSettings, Heartbeats, Inspect, Listener, LockStore, Push, Renewal, Renewals,
        Reply, Scan, ScanPage, StoreError, StoreFuture, Waiter,
    },
    types::{LockName, Replication, RuntimeId},
};

/// Leases in the memory of this process, under the same rules as in Redis.
///
/// For single processes, tests and examples. Its clock starts at the time of day and then never
/// steps, so fences keep growing from one run of the program to the next.
#[derive(Debug)]
pub struct MemoryStore {
    settings: FenceSettings,
    state: Arc<MemoryState>,
}

/// What all stores [beside](MemoryStore::beside) one have in common.
#[derive(Debug)]
struct MemoryState {
    clock: Arc<dyn Clock>,
    started_at: Instant,
    started_unix: Duration,
    keyspace: Mutex<Keyspace>,
    listeners: Mutex<BTreeMap<RuntimeId, Weak<dyn Listener>>>,
}

impl MemoryStore {
    /// An empty store on a clock.
    pub fn new(clock: Arc<dyn Clock>, settings: FenceSettings) -> Self {
        let (started_at, started_unix) = (clock.now(), clock.unix_time());
        let (keyspace, listeners) = (Mutex::default(), Mutex::default());
        let state = MemoryState { clock, started_at, started_unix, keyspace, listeners };
        Self { settings, state: Arc::new(state) }
    }

    /// The same locks, for processes whose settings are others, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn beside(&self, settings: FenceSettings) -> Self {
        Self { settings, state: Arc::clone(&self.state) }
    }

    /// How many names the store knows; idle ones are forgotten.
    pub fn known_names(&self) -> usize {
        let now = self.server_time();
        self.state.keyspace.lock().len(now)
    }

    /// Forgets everything, as `FLUSHALL` would; for tests of what a loss of data does.
    pub fn clear(&self) {
        self.state.keyspace.lock().clear();
    }

    /// Forgets one part of what is known of a name, as an eviction would, for tests.
    #[doc(hidden)]
    pub fn lose(&self, name: &LockName, part: Part) {
        self.with(name, |row, _| row.lose(part));
    }

    /// A copy of what is known of a name, for tests.
    #[doc(hidden)]
    pub fn copy(&self, name: &LockName) -> Copied {
        self.with(name, |row, now| Copied { row: row.clone(), at: now })
    }

    /// Forgets a name, and returns what was known of it, for tests.
    #[doc(hidden)]
    pub fn take(&self, name: &LockName) -> Copied {
        self.with(name, |row, now| Copied { row: std::mem::take(row), at: now })
    }

    /// Knows of a name what another store knew, for tests. Times are those of the other's clock.
    #[doc(hidden)]
    pub fn paste(&self, name: &LockName, copied: &Copied) {
        self.with(name, |row, _| *row = copied.row.clone());
    }

    fn run(&self, command: Command) -> Result<Reply, StoreError> {
        Ok(match command {
            Command::Acquire(acquire) => {
                without_replicas(acquire.acks)?;
                self.apply(&acquire.name, |step| step.acquire(&acquire))?.into()
            }
            Command::Heartbeat(Heartbeats { batch, label }) => {
                let wait = |waiter: &Waiter| {
                    let Waiter { ref name, id, mode, ttl, watermark, keeps, heartbeat } = *waiter;
                    let asker = PlaceRow::new((id, mode), ttl, watermark, &label, keeps, heartbeat);
                    self.apply(name, |step| step.wait(&asker))
                };
                batch.iter().map(wait).collect::<Vec<_>>().into()
            }
            Command::Hold(hold) => {
                without_replicas(hold.acks)?;
                self.apply(&hold.name, |step| step.hold(&hold)).into()
            }
            Command::Release(release) => {
                self.apply(&release.name, |step| step.release(&release)).into()
            }
            Command::Renew(Renewals { batch }) => {
                let renew = |one: &Renewal| {
                    without_replicas(one.acks)?;
                    Ok(self.apply(&one.name, |step| step.renew(one)))
                };
                batch.iter().map(renew).collect::<Vec<_>>().into()
            }
            Command::Withdraw(withdraw) => {
                self.apply(&withdraw.name, |step| step.withdraw(&withdraw)).into()
            }
            Command::Inspect(Inspect { names }) => {
                #[expect(
                    clippy::redundant_closure_for_method_calls,
                    reason = "the method by its path is one of a single lifetime"
                )]
                let look = |name: &LockName| Ok(self.apply(name, |step| step.inspect()));
                names.iter().map(look).collect::<Vec<_>>().into()
            }
            Command::Scan(scan) => self.scan(&scan).into(),
            Command::ForceRelease(force) => {
                self.apply(&force.name, |step| step.force_release(&force)).into()
            }
        })
    }

    /// All names, in one step.
    fn scan(&self, scan: &Scan) -> ScanPage {
        let mut names = self.state.keyspace.lock().names(self.server_time());
        names.retain(|name| scan.pattern.matches(name));
        ScanPage { names, failed: None, next: None }
    }

    /// Takes one step on the row of a name, then delivers what it sent.
    fn apply<T>(&self, name: &LockName, rule: impl FnOnce(&mut Step<'_>) -> T) -> T {
        let (answer, mail) = self.with(name, |row, now| {
            let mut step = Step { row, name, now, settings: &self.settings, mail: Vec::new() };
            let answer = rule(&mut step);
            (answer, step.mail)
        });
        for (to, push) in mail {
            let listener = self.state.listeners.lock().get(&to).and_then(Weak::upgrade);
            if let Some(listener) = listener {
                listener.on_push(push);
            }
        }
        answer
    }

    fn with<T>(&self, name: &LockName, rule: impl FnOnce(&mut Row, Instant) -> T) -> T {
        let now = self.server_time();
        self.state.keyspace.lock().with(now, name, |row| rule(row, now))
    }

    /// A time since the Unix epoch, which never steps.
    fn server_time(&self) -> Instant {
        let MemoryState { clock, started_at, started_unix, .. } = &*self.state;
        let running = clock.now().saturating_since(*started_at);
        Instant::at(*started_unix + running)
    }
}

impl LockStore for MemoryStore {
    /// The deadline does not matter: each reply is there at once.
    fn send(&self, command: Command, _deadline: Instant) -> StoreFuture<'_, Reply> {
        Box::pin(async move { self.run(command) })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        {
            let mut listeners = self.state.listeners.lock();
            listeners.retain(|_, other| other.strong_count() > 0);
            listeners.insert(runtime, Weak::clone(&listener));
        }
        if let Some(listener) = listener.upgrade() {
            listener.on_push(Push::Listening);
        }
    }

    fn ends_with_process(&self) -> bool {
        true
    }
}

/// A memory has no replicas: what needs them does not run.
fn without_replicas(asked: Replication) -> Result<(), StoreError> {
    if asked.are_asked() { Err(StoreError::unacknowledged(asked, "none")) } else { Ok(()) }
}

/// What a store knew of a name at one moment, for the replicas of a simulated server.
#[derive(Debug, Clone)]
pub struct Copied {
    row: Row,
    /// By the clock of the store that it was copied from.
    at: Instant,
}

impl Copied {
    /// Whether nothing was known.
    pub fn is_empty(&self) -> bool {
        self.row.ends().is_some_and(|ends| ends <= self.at)
    }
}
