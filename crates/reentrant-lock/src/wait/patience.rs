use std::time::Duration;

use leasehold_core::Instant;

/// For how long to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// Not at all: a taken lock is an answer.
    Try,
    /// For a while.
    For(Duration),
    /// Without a limit.
    Forever,
}

impl Patience {
    /// When it ends for a wait that began at `started`; `None` for never, or with the answer.
    pub(super) fn ends(self, started: Instant) -> Option<Instant> {
        match self {
            Self::Try | Self::Forever | Self::For(Duration::ZERO) => None,
            Self::For(wait) => Some(started + wait),
        }
    }
}
