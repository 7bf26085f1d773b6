use leasehold_core::{StoreError, StoreErrorKind};

use super::moment::Moment;

/// Commands about an acquisition of which nobody knows whether they were executed, or will be.
///
/// While there are any, a copy may still come: the acquisition is withdrawn when its turn ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unanswered {
    /// How many answers are awaited.
    awaited: u16,
    /// Whether an answer will never come.
    lost: bool,
}

impl Unanswered {
    /// One command is under way.
    pub(super) fn one() -> Self {
        Self { awaited: 1, lost: false }
    }

    /// A command is sent.
    pub(super) fn sent(&mut self) {
        self.awaited = self.awaited.saturating_add(1);
    }

    /// A command that was sent has come to this.
    pub(super) fn answered<T>(&mut self, result: &Result<T, StoreError>) {
        self.awaited = self.awaited.saturating_sub(1);
        let is_unknown = |error: &StoreError| error.kind() == StoreErrorKind::Indeterminate;
        self.lost |= result.as_ref().is_err_and(is_unknown);
    }

    /// Nobody awaits the answer to a command any more, if that is so.
    pub(super) fn lose(&mut self, is_lost: bool) {
        self.lost |= is_lost;
    }

    /// Whether an answer is awaited.
    pub(super) fn is_awaited(self) -> bool {
        self.awaited > 0
    }

    /// Whether there are any.
    pub(super) fn is_any(self) -> bool {
        self.is_awaited() || self.lost
    }

    /// What a turn keeps of it that begins.
    pub(super) fn kept(self, m: &Moment<'_>) -> Self {
        let awaited = if (m.rules.remembers_unanswered)() { self.awaited } else { 0 };
        Self { awaited, ..self }
    }
}
