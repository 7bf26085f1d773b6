use std::{sync::Arc, time::Duration};

use super::{
    log::{Failures, OutageLog, tenths},
    state::OutageState,
    subject::Subject,
};
use crate::{
    clock::{Clock, Instant},
    lease::LossReason,
    mutex::Mutex,
    process::Origin,
    store::StoreError,
    types::{AcquisitionId, Fence, LockName},
};

/// What one runtime knows about outages of its server, fed with every command that it sends.
#[derive(Debug)]
pub struct OutageWatch {
    clock: Arc<dyn Clock>,
    origin: Origin,
    // Nothing is logged under this lock: a subscriber may be slow.
    known: Mutex<(OutageState, OutageLog)>,
}

/// What depends on the server now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtStake {
    /// Leases that are held: each is lost at the end of its ttl if it is not renewed.
    pub leases: usize,
    /// Acquires that wait.
    pub waiting: usize,
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
        if self.known.lock().1.lost(now) {
            let held_for = tenths(held_for);
            tracing::warn!(%lock, %lease, %fence, ?held_for, "lease lost: {reason}");
        } else {
            tracing::debug!(%lock, %lease, %fence, "lease lost: {reason}");
        }
    }

    /// A grant showed at `now` that the fence counter of a lock had lost data.
    pub fn regressed(&self, now: Instant, lock: &LockName, fence: Fence) {
        if self.known.lock().1.regressions.admits(now) {
            tracing::error!(
                %lock, %fence,
                "the server's fence counter was behind what this process had seen: the server lost data, \
                 or another one is at its address; the new fence is above both"
            );
        }
    }

    /// Logs what has happened since the last call; call it every few seconds, and at the end.
    pub fn tick(&self, now: Instant, at_stake: impl FnOnce() -> AtStake) {
        let (outage, news) = {
            let (state, log) = &mut *self.known.lock();
            (state.outage(), log.tick(now))
        };
        if let Some(failures) = news.failing {
            let unreachable_for = outage.map(|outage| now.saturating_since(outage.since));
            failures.log(unreachable_for, at_stake());
        }
        if let Some(failures) = news.over {
            failures.log_end();
        }
        if news.lost > 0 {
            tracing::warn!(leases = news.lost, "more leases lost");
        }
        if news.regressed > 0 {
            tracing::error!(
                locks = news.regressed,
                "more fence counters were behind what this process had seen"
            );
        }
    }

    /// A command is sent.
    pub(super) fn sent(&self, now: Instant) {
        self.known.lock().0.sent(now);
    }

    /// A command was answered, or failed.
    pub(super) fn ended(&self, subject: &Subject, sent_at: Instant, error: Option<&StoreError>) {
        let now = self.clock.now();
        let (over, is_news) = {
            let (state, log) = &mut *self.known.lock();
            let outage_since = match error {
                Some(error) if !error.is_sign_of_life() => {
                    state.unanswered(sent_at, error.clone());
                    None
                }
                _ => state.answered(now),
            };
            let over = outage_since.and_then(|since| log.reached(now, now.saturating_since(since)));
            (over, log.ended(now, sent_at, subject, error))
        };
        over.iter().for_each(Failures::log_end);
        if let Some(error) = error {
            subject.log_failure(error, is_news);
        }
    }

    /// The sender of a command has stopped waiting for its reply.
    pub(super) fn given_up(&self) {
        let now = self.clock.now();
        if self.origin.is_here(now) {
            self.known.lock().0.given_up(now);
        }
    }
}
