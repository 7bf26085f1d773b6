use std::{
    future::{Future, ready},
    mem,
    sync::{Arc, Weak},
    time::Duration,
};

use super::{
    log::{Failures, OutageLog, Subject, tenths},
    state::OutageState,
};
use crate::{
    clock::{Clock, Instant},
    lease::LossReason,
    mutex::Mutex,
    process::Origin,
    store::{Listener, LockStore, Reply, Request, StoreError, StoreFuture, of_its_kind},
    types::{AcquisitionId, Fence, LockName, RuntimeId},
};

/// What one runtime knows about outages of its server, fed with every command that it sends.
#[derive(Debug)]
pub struct OutageWatch {
    clock: Arc<dyn Clock>,
    origin: Origin,
    // Nothing is logged under this lock: a subscriber may be slow.
    known: Mutex<(OutageState, OutageLog)>,
}

impl OutageWatch {
    /// Nothing was sent yet by the runtime of a process.
    pub fn new(clock: Arc<dyn Clock>, origin: Origin) -> Self {
        Self { clock, origin, known: Mutex::default() }
    }

    /// The process of the runtime.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The clock of the runtime.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Whether the server answers, as far as it is known at this moment.
    pub fn state(&self) -> OutageState {
        self.known.lock().0.clone()
    }

    /// A lease was lost at `now`, after it had been held for some time.
    pub fn lost(
        &self,
        now: Instant,
        lock: &LockName,
        (lease, fence): (AcquisitionId, Fence),
        held_for: Duration,
        reason: LossReason,
    ) {
        if reason == LossReason::Shutdown {
            // Its own process asked for it, and has the report.
            tracing::debug!(%lock, %lease, %fence, "lease ended: {reason}");
        } else if self.known.lock().1.lost(now) {
            let held_for = tenths(held_for);
            tracing::warn!(%lock, %lease, %fence, ?held_for, "lease lost: {reason}");
        } else {
            tracing::debug!(%lock, %lease, %fence, "lease lost: {reason}");
        }
    }

    /// A grant showed at `now` that the fence counter of a lock was behind a fence that this process had seen.
    pub fn regressed(&self, now: Instant, lock: &LockName, fence: Fence) {
        if self.known.lock().1.regressions.admits(now) {
            tracing::error!(
                %lock, %fence,
                "the server's fence counter was behind what this process had seen: the server lost data, \
                 or another one is at its address; the new fence is above both"
            );
        }
    }

    /// Logs what has happened since the last call, with how many leases are lost if they are not renewed,
    /// and how many acquires wait. Call it every few seconds, and at the end.
    pub fn tick(&self, now: Instant, leases_at_risk: usize, acquires_waiting: usize) {
        let (unreachable_for, (failing, over), lost, regressed) = {
            let (state, log) = &mut *self.known.lock();
            let unreachable_for = state.outage().map(|outage| now.saturating_since(outage.since));
            let (lost, regressed) = (log.losses.take_others(), log.regressions.take_others());
            (unreachable_for, log.tick(now), lost, regressed)
        };
        if let Some(failures) = failing {
            failures.log(unreachable_for, leases_at_risk, acquires_waiting);
        }
        if let Some(failures) = over {
            failures.log_end();
        }
        if lost > 0 {
            tracing::warn!(leases = lost, "more leases lost");
        }
        if regressed > 0 {
            tracing::error!(
                locks = regressed,
                "more fence counters were behind what this process had seen"
            );
        }
    }

    /// A command succeeded.
    fn answered(&self) {
        let now = self.clock.now();
        let over = {
            let (state, log) = &mut *self.known.lock();
            log.succeeded = true;
            state.answered(now).and_then(|since| log.reached(now, since))
        };
        over.iter().for_each(Failures::log_end);
    }

    /// A command of `sent_at` failed.
    fn failed(&self, subject: &Subject, sent_at: Instant, error: &StoreError) {
        let now = self.clock.now();
        let (over, is_news) = {
            let (state, log) = &mut *self.known.lock();
            let over = if error.is_sign_of_life() {
                state.answered(now).and_then(|since| log.reached(now, since))
            } else {
                state.unanswered(sent_at, error.clone());
                None
            };
            (over, log.failed(now, sent_at, subject, error))
        };
        over.iter().for_each(Failures::log_end);
        subject.log_failure(error, is_news);
    }
}

/// A store whose commands, replies and failures are reported to an [`OutageWatch`].
///
/// In a fork of its process no command is sent, and each fails: two processes would have the same
/// ids. All commands of a runtime pass here. Each takes the time at which it is sent, and is on its way
/// when it is made.
#[derive(Debug)]
pub struct WatchedStore {
    store: Arc<dyn LockStore>,
    watch: Arc<OutageWatch>,
}

/// A command on its way. Dropped before its reply, it counts as given up.
struct InFlight<'a>(&'a OutageWatch);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let Self(OutageWatch { clock, origin, known }) = self;
        let now = clock.now();
        if origin.is_here(now) {
            known.lock().0.given_up(now);
        }
    }
}

impl WatchedStore {
    /// Tells `watch` of what happens on `store`.
    pub fn new(store: Arc<dyn LockStore>, watch: Arc<OutageWatch>) -> Self {
        Self { store, watch }
    }

    /// Sends a command at `now`, as [`send`](LockStore::send) does.
    ///
    /// # Errors
    ///
    /// As [`send`](LockStore::send), and of kind `Config` in a fork.
    ///
    /// # Cancel safety
    ///
    /// As [`send`](LockStore::send).
    pub fn ask<R: Request>(
        &self,
        now: Instant,
        request: R,
        deadline: Instant,
    ) -> impl Future<Output = Result<R::Reply, StoreError>> + Send + use<'_, R> {
        let watch = &*self.watch;
        let command = request.into();
        let subject = Subject::of(&command);
        let (sending, in_flight): (StoreFuture<'_, Reply>, _) = if watch.origin.is_here(now) {
            watch.known.lock().0.sent(now);
            let in_flight = InFlight(watch);
            (self.store.send(command, deadline), Some(in_flight))
        } else {
            (Box::pin(ready(Err(watch.origin.error()))), None)
        };
        async move {
            let reply = sending.await;
            if let Some(in_flight) = in_flight {
                mem::forget(in_flight);
                match reply.as_ref().map_or_else(Some, Reply::failure) {
                    Some(error) => watch.failed(&subject, now, error),
                    None => watch.answered(),
                }
            }
            of_its_kind(reply?)
        }
    }

    /// Passes all pushes for a runtime to a listener; see [`listen`](LockStore::listen).
    pub fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.store.listen(runtime, listener);
    }

    /// Whether the store ends with this process; see
    /// [`ends_with_process`](LockStore::ends_with_process).
    pub fn ends_with_process(&self) -> bool {
        self.store.ends_with_process()
    }

    /// Which part of the store a name lives in; see [`shard`](LockStore::shard).
    pub fn shard(&self, name: &LockName) -> usize {
        self.store.shard(name)
    }
}
