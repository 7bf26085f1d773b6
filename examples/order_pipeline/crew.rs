use std::{collections::BTreeMap, time::Duration};

use leasehold::{Guard, Inspection, LockRuntime, ReentrantLock};

use crate::{failure::Failure, pause::pause, storage::Storage, tally::Tally};

/// How long a lease lives without renewal; a copy that crashes holds the others up for as long.
pub(crate) const TTL: Duration = Duration::from_secs(2);

/// This copy of the program among the others.
///
/// A lease says that it is alive: held for as long as it works, renewed by the watchdog, and free
/// soon after a crash.
#[derive(Debug)]
pub(crate) struct Crew {
    locks: LockRuntime,
    copy: String,
    presence: Guard,
}

/// What all copies of a run handed in.
#[derive(Debug)]
pub(crate) struct HandedIn {
    pub(crate) tally: Tally,
    pub(crate) copies: usize,
    /// Copies that ended before they handed in; the others did their work.
    pub(crate) gone: usize,
}

impl Crew {
    /// Makes this copy known, before it joins a run.
    pub(crate) async fn enter(locks: LockRuntime) -> Result<Self, Failure> {
        let copy = locks.id().to_string();
        let presence = presence_lock(&locks, &copy)?.acquire().await?;
        Ok(Self { locks, copy, presence })
    }

    pub(crate) fn locks(&self) -> &LockRuntime {
        &self.locks
    }

    /// The name of this copy.
    pub(crate) fn copy(&self) -> &str {
        &self.copy
    }

    /// The lock that whoever opens, joins or closes a run, or hands in, must hold.
    pub(crate) fn run_lock(&self) -> Result<ReentrantLock, Failure> {
        Ok(self.locks.lock("order_pipeline/run")?.class("run")?)
    }

    /// Closes the run to newcomers and hands in what this copy counted.
    pub(crate) async fn hand_in(
        &self,
        storage: &impl Storage,
        tally: &Tally,
    ) -> Result<(), Failure> {
        loop {
            let guard = self.run_lock()?.acquire().await?;
            let stamp = guard.stamp();
            let told = match storage.close(stamp).await {
                Ok(()) => storage.hand_in(&self.copy, tally, stamp).await,
                refused => refused,
            };
            // The lease may have been lost; what was told was told under its fence.
            drop(guard.release().await);
            match told {
                Err(error) if error.is_stale() => {}
                told => return Ok(told?),
            }
        }
    }

    /// Waits until every copy of the run has handed in, or is gone.
    pub(crate) async fn wait_for_all(&self, storage: &impl Storage) -> Result<HandedIn, Failure> {
        loop {
            let missing = missing(&storage.copies().await?);
            let mut working = 0;
            for copy in &missing {
                let lock = presence_lock(&self.locks, copy)?;
                let held = self.locks.inspect(lock.name().as_str()).await?;
                working += usize::from(matches!(held, Inspection::Held(_)));
            }
            if working == 0 {
                // Read after it was seen that nobody works: what was handed in last is in it.
                let copies = storage.copies().await?;
                return Ok(HandedIn::of(copies));
            }
            pause(Duration::from_millis(100)).await;
        }
    }

    /// Leaves, giving everything back.
    pub(crate) async fn leave(self) -> Result<(), Failure> {
        // A copy that was stopped for a while may have lost it, and nothing depends on it now.
        drop(self.presence.release().await);
        let report = self.locks.shutdown(Duration::from_secs(2)).await;
        if report.held == 0 && report.unreleased.is_empty() {
            return Ok(());
        }
        Err(format!("leases were left over: {report:?}").into())
    }
}

impl HandedIn {
    fn of(copies: BTreeMap<String, Option<Tally>>) -> Self {
        let (count, gone) = (copies.len(), missing(&copies).len());
        let mut sum = Tally::default();
        copies.into_values().flatten().for_each(|tally| sum.add(tally));
        Self { tally: sum, copies: count, gone }
    }
}

fn missing(copies: &BTreeMap<String, Option<Tally>>) -> Vec<String> {
    copies.iter().filter(|(_, tally)| tally.is_none()).map(|(copy, _)| copy.clone()).collect()
}

fn presence_lock(locks: &LockRuntime, copy: &str) -> Result<ReentrantLock, Failure> {
    Ok(locks.lock(format!("order_pipeline/copy/{copy}"))?.class("run")?)
}
