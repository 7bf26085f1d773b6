use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Instant, LockName,
    lease::{LeaseState, LossReason},
    metric::ReleaseVia,
};
use tokio::{select, sync::watch};

use super::core::Engine;

/// The drain of a runtime once it has begun; its report when it is over.
#[derive(Debug, Default)]
pub(super) struct Drain {
    begun: AtomicBool,
    report: OnceLock<watch::Receiver<Option<ShutdownReport>>>,
}

/// What a shutdown or a drain could do in its time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "leases that were not released stay closed until their ttl ends"]
pub struct ShutdownReport {
    /// How many leases were held when the shutdown began, or when the time of the drain was over;
    /// their holders saw them as lost.
    pub held: usize,
    /// The locks of leases that ended, and whose release the server has not confirmed in time, in
    /// order; free when their ttl ends. Acquires that failed or were given up are not listed: a
    /// place or grant that one of them may have left expires by itself.
    pub unreleased: Vec<LockName>,
}

impl ShutdownReport {
    /// A fork holds nothing.
    fn of_fork() -> Self {
        Self { held: 0, unreleased: Vec::new() }
    }
}

impl Engine {
    /// Refuses further acquires, ends every held lease, and waits for the server to confirm.
    ///
    /// Takes at most `time`. For withdrawals, which an outage may hold up for long, it waits at
    /// most one command timeout. `LockRuntime::shutdown` says more.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the shutdown under way.
    pub async fn shutdown(&self, time: Duration) -> ShutdownReport {
        if self.is_forked() {
            return ShutdownReport::of_fork();
        }
        let now = self.clock.now();
        let (soon, deadline) = (now + self.timing.command_timeout, now + time);
        self.refuse();
        let mut held = 0;
        for lease in self.watches.leases() {
            if !lease.is_held()
                || lease.lose(LossReason::Shutdown) != LeaseState::Lost(LossReason::Shutdown)
            {
                continue;
            }
            held += 1;
            self.release_lost(&lease, ReleaseVia::Shutdown);
            self.on_lost(lease.turn(), LossReason::Shutdown, lease.closed_until());
        }
        // Once more through the lock of every name: a lease that was just being given back counted
        // as released above, and its release is announced before that lock is let go.
        self.close();
        let unreleased = self.pending.drain(&*self.clock, soon, deadline).await;
        ShutdownReport { held, unreleased }
    }

    /// Gives no new leases: calls that wait end, and an acquire on its way gets nothing.
    fn refuse(&self) {
        self.refuses.store(true, Ordering::SeqCst);
        self.pending.remember_failures();
        self.close();
    }

    /// Whether a drain has begun, and its report is not there yet.
    pub(crate) fn is_draining(&self) -> bool {
        let Drain { begun, report } = &self.drain;
        let is_over = || report.get().is_some_and(|report| report.borrow().is_some());
        begun.load(Ordering::SeqCst) && !is_over()
    }

    /// Refuses new leases, lets guards end for at most `time`, then shuts down.
    /// `LockRuntime::drain` says more.
    ///
    /// The server has until `time` is over to confirm releases, and one command timeout in any
    /// case.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the drain under way.
    pub async fn drain(self: &Arc<Self>, time: Duration) -> ShutdownReport {
        if self.is_forked() {
            return ShutdownReport::of_fork();
        }
        let mut report = self.drain.report.get_or_init(|| self.begin_drain(time)).clone();
        let drained = report.wait_for(Option::is_some).await.ok().and_then(|report| report.clone());
        match drained {
            Some(report) => report,
            // The tokio runtime that the drain lived on has stopped.
            None => self.shutdown(Duration::ZERO).await,
        }
    }

    // ADR 0016
    fn begin_drain(self: &Arc<Self>, time: Duration) -> watch::Receiver<Option<ShutdownReport>> {
        let until = self.clock.now() + time;
        // Set before calls are refused, so that their error says that the runtime drains.
        self.drain.begun.store(true, Ordering::SeqCst);
        self.refuse();
        let (sender, report) = watch::channel(None);
        let engine = Arc::clone(self);
        // A task of its own: the drain goes on when its caller's future is dropped.
        self.spawn(async move {
            engine.until_given_back(until).await;
            let rest = until.saturating_since(engine.clock.now());
            let rest = rest.max(engine.timing.command_timeout);
            sender.send_replace(Some(engine.shutdown(rest).await));
        });
        report
    }

    async fn until_given_back(&self, until: Instant) {
        loop {
            let mut leases = self.watches.leases();
            leases.retain(|lease| lease.is_held());
            if leases.is_empty() {
                return;
            }
            for lease in leases {
                select! {
                    biased;
                    _ = lease.lost() => {}
                    () = self.clock.sleep_until(until) => return,
                }
            }
        }
    }
}
