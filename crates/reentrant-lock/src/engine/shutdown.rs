use std::time::Duration;

use leasehold_core::{
    LockName,
    lease::{LeaseState, LossReason},
    metric::ReleaseVia,
};
use leasehold_watchdog::TurnKeeper;

use super::{
    core::Engine,
    job::{Job, Task},
};

/// What a shutdown or a drain could do in its time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "leases that were not released stay closed until their ttl ends"]
pub struct ShutdownReport {
    /// How many leases were held when the shutdown began, or when the time of the drain was over;
    /// their holders were told that they are lost.
    pub held: usize,
    /// The locks of leases that ended, and whose release the server has not confirmed in time, in
    /// order; free when their ttl ends. Acquires that failed or were given up are not listed: a place
    /// or grant that one of them may have left expires by itself.
    pub unreleased: Vec<LockName>,
}

impl Engine {
    /// Refuses further acquires, ends every held lease, and waits for the server to confirm.
    ///
    /// Holders learn of it at once: their lease is `Lost(Shutdown)` before the server is told.
    /// Takes at most `time`, and reports what could not be released within it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the shutdown under way; call it again to wait for the rest.
    pub async fn shutdown(&self, time: Duration) -> ShutdownReport {
        let deadline = self.clock.now() + time;
        self.refuse();
        let mut held = 0;
        for lease in self.cohorts.shared.watches.leases() {
            if !lease.state().is_held()
                || lease.lose(LossReason::Shutdown) != LeaseState::Lost(LossReason::Shutdown)
            {
                continue;
            }
            held += 1;
            let turn = lease.turn();
            self.reaper.take(Job {
                name: turn.name().clone(),
                id: turn.id(),
                task: Task::Release {
                    fence: turn.first(),
                    via: ReleaseVia::Shutdown,
                    turn: None,
                    closed_until: lease.closed_until(),
                    copies: None,
                },
                expires: self.clock.now() + turn.ttl().get(),
                timeout: self.timing.command_deadline(turn.ttl()),
                metrics: lease.metrics().clone(),
                waits: None,
            });
            self.cohorts.lost(turn, LossReason::Shutdown, lease.closed_until());
        }
        // Once more through the lock of every name: a lease that was just being given back counted
        // as released above, and its release is announced before that lock is let go.
        self.cohorts.close();
        let unreleased = self.reaper.drain(&*self.clock, deadline).await;
        ShutdownReport { held, unreleased }
    }

    /// Nobody gets a new lease any more: calls that wait are sent away, and an acquire on its way
    /// gets nothing. Held leases go on.
    pub(super) fn refuse(&self) {
        self.closed.cancel();
        self.reaper.remember_failures();
        self.cohorts.close();
    }
}
