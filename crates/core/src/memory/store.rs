use std::{
    future::ready,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{keyspace::Keyspace, row::Row, rules, time::ServerTime};
use crate::{
    clock::{Clock, Instant},
    store::{
        Acquire, AcquireAnswer, FenceSettings, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer,
        Inspection, LockStore, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreFuture, Withdraw,
        WithdrawAnswer,
    },
    words::LockName,
};

/// Leases in the memory of this process, under the same rules as in Redis.
///
/// For single processes, tests and examples. Its clock starts at the time of day and then never
/// steps, so fences keep growing from one run of the program to the next.
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    settings: FenceSettings,
    started_at: Instant,
    started_unix: Duration,
    keyspace: Mutex<Keyspace>,
}

impl MemoryStore {
    /// An empty store on a clock.
    ///
    /// A retention outside of its range is moved to the nearer end; see
    /// [`FenceSettings::validated`].
    pub fn new(clock: Arc<dyn Clock>, settings: FenceSettings) -> Self {
        let (started_at, started_unix) = (clock.now(), clock.unix_time());
        let settings = settings.clamped();
        Self { clock, settings, started_at, started_unix, keyspace: Mutex::default() }
    }

    /// How many names the store knows; idle ones are forgotten.
    pub fn known_names(&self) -> usize {
        let now = self.server_time();
        self.keyspace().len(now)
    }

    /// Forgets everything, as `FLUSHALL` would; for tests of what a loss of data does.
    pub fn clear(&self) {
        self.keyspace().clear();
    }

    fn apply<T>(&self, name: &LockName, rule: impl FnOnce(&mut Row, ServerTime) -> T) -> T {
        let now = self.server_time();
        self.keyspace().with(now, name, |row| rule(row, now))
    }

    fn server_time(&self) -> ServerTime {
        let running = self.clock.now().saturating_since(self.started_at);
        ServerTime::at(self.started_unix + running)
    }

    fn keyspace(&self) -> MutexGuard<'_, Keyspace> {
        self.keyspace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockStore for MemoryStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        Box::pin(async move {
            self.apply(command.name, |row, now| rules::acquire(row, now, self.settings, &command))
        })
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        Box::pin(
            async move { Ok(self.apply(command.name, |row, now| rules::hold(row, now, &command))) },
        )
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        Box::pin(async move {
            Ok(self.apply(command.name, |row, now| rules::release(row, now, &command)))
        })
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        _deadline: Instant,
    ) -> StoreFuture<'a, Vec<RenewAnswer>> {
        Box::pin(async move {
            let renew =
                |one: &Renewal| self.apply(&one.name, |row, now| rules::renew(row, now, one));
            Ok(batch.iter().map(renew).collect())
        })
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        Box::pin(async move {
            Ok(self.apply(command.name, |row, now| rules::withdraw(row, now, &command)))
        })
    }

    fn inspect<'a>(
        &'a self,
        name: &'a LockName,
        _deadline: Instant,
    ) -> StoreFuture<'a, Inspection> {
        Box::pin(ready(Ok(self.apply(name, rules::inspect))))
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        Box::pin(async move {
            Ok(self.apply(command.name, |row, now| {
                rules::force_release(row, now, self.settings, &command)
            }))
        })
    }
}
