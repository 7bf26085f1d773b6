use std::{
    future::{Future, IntoFuture, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use leasehold_core::{Instant, lease::LossReason};

use super::{
    guard::AllGuard,
    leases::{AllLeases, AllLost},
    locks::AllLocks,
};
use crate::{
    engine::Engine,
    error::{AcquireError, LeaseLost},
    guard::Guard,
    lock::Acquire,
    wait::WaitLimit,
};

/// A call that takes several locks, one after the other. Dropped, it gives back what it has.
// ADR 0021
pub(super) struct Taking {
    locks: AllLocks,
    /// How each lock is acquired.
    how: Acquire,
    min_hold: Option<Duration>,
    started: Instant,
    taken: Taken,
}

impl Taking {
    pub(super) fn new(locks: AllLocks, how: Acquire, min_hold: Option<Duration>) -> Self {
        let started = locks.first.engine.clock.now();
        let gives_back = locks.first.engine.rules.gives_back;
        let taken = Taken { guards: Vec::with_capacity(locks.names.len()), gives_back };
        Self { locks, how, min_hold, started, taken }
    }

    pub(super) async fn run(mut self) -> Result<AllGuard, AcquireError> {
        let mut lost = AllLost::empty();
        for name in &*self.locks.names {
            let mut acquire = self.how.clone();
            (acquire.lock.name, acquire.limit) = (name.clone(), self.patience());
            let guard = self.take(acquire, &mut lost).await?;
            lost.add(guard.lease());
            self.taken.guards.push(guard);
        }
        let leases = AllLeases(self.taken.guards.iter().map(Guard::lease).collect());
        if let Some(hold) = self.min_hold {
            // Not before: a call that fails leaves no lock closed.
            let until = self.engine().clock.now() + hold;
            for lease in leases.iter() {
                let _ = lease.0.close_if_held(until);
            }
        }
        if let Some(loss) = leases.loss() {
            return Err(self.lost(loss));
        }
        Ok(AllGuard::new(std::mem::take(&mut self.taken.guards)))
    }

    /// Takes the next lock, unless one of those that were taken is lost meanwhile.
    async fn take(&self, acquire: Acquire, lost: &mut AllLost) -> Result<Guard, AcquireError> {
        let mut acquiring = acquire.into_future();
        let taken = poll_fn(|cx| match acquiring.as_mut().poll(cx) {
            Poll::Ready(taken) => Poll::Ready(taken),
            Poll::Pending => Pin::new(&mut *lost).poll(cx).map(|lost| Err(self.lost(lost))),
        });
        taken.await.map_err(|error| self.of_the_whole(error))
    }

    /// How long the next lock may be waited for: one wait is for all.
    fn patience(&self) -> WaitLimit {
        match self.how.limit {
            WaitLimit::For(wait) => WaitLimit::For(wait.saturating_sub(self.waited())),
            other => other,
        }
    }

    fn waited(&self) -> Duration {
        self.engine().clock.now().saturating_since(self.started)
    }

    /// The same error; it tells how long the whole call has waited.
    fn of_the_whole(&self, mut error: AcquireError) -> AcquireError {
        match &mut error {
            AcquireError::Timeout(timeout) => timeout.waited = self.waited(),
            AcquireError::Unavailable(unavailable) => unavailable.waited = self.waited(),
            _ => {}
        }
        error
    }

    fn lost(&self, lost: LeaseLost) -> AcquireError {
        let engine = self.engine();
        if lost.reason == LossReason::Shutdown && engine.ending.refuses() {
            return AcquireError::ShutDown {
                lock: lost.lock,
                draining: engine.ending.is_draining(),
            };
        }
        AcquireError::Lost(lost)
    }

    fn engine(&self) -> &Engine {
        &self.locks.first.engine
    }
}

/// What was taken so far; dropped, it is given back, the last one first.
struct Taken {
    guards: Vec<Guard>,
    gives_back: fn(bool) -> bool,
}

impl Drop for Taken {
    fn drop(&mut self) {
        while let Some(guard) = self.guards.pop() {
            if (self.gives_back)(false) {
                drop(guard);
            } else {
                std::mem::forget(guard);
            }
        }
    }
}
