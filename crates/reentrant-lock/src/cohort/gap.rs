use std::task::Waker;

use leasehold_core::Instant;

/// Messages that may have been lost while a release was under way: another copy of it is sent, whose
/// answer tells of them.
#[derive(Debug, Default)]
pub(crate) struct Gap {
    /// When the copy is to be sent.
    pub(super) asks_at: Option<Instant>,
    /// Whether that time has come.
    is_due: bool,
    /// What wakes the task that sends the release.
    sender: Option<Waker>,
}

impl Gap {
    /// Messages may have been lost: a copy is sent `soon`. A later gap does not put off an earlier one.
    pub(super) fn missed(&mut self, soon: Instant) {
        self.asks_at = Some(self.asks_at.map_or(soon, |at| at.min(soon)));
    }

    /// It is `now`; yields what wakes the sender, if the copy is due.
    pub(super) fn look(&mut self, now: Instant) -> Option<Waker> {
        self.asks_at = self.asks_at.filter(|at| *at > now);
        self.is_due = true;
        self.sender.take()
    }

    /// Whether the copy is to be sent now; otherwise the sender is woken by `waker` when it is.
    pub(super) fn is_due(&mut self, waker: &Waker) -> bool {
        if !self.sender.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.sender = Some(waker.clone());
        }
        std::mem::take(&mut self.is_due)
    }
}
