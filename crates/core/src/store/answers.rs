//! Answers are exhaustive enums: a new one must break the build of code that matches them.

use std::time::Duration;

use crate::types::FenceToken;

/// The answer to [`Acquire`](super::Acquire).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireAnswer {
    /// The asker holds the lease, newly or still.
    Granted(Granted),
    /// Another acquisition holds the lock, and the command does not wait.
    Busy {
        /// How long the present lease has left.
        remaining: Duration,
        /// Whether its runtime may keep the lock idle: it then passes the lock on when another one
        /// queues.
        keeps: bool,
    },
    /// Another acquisition holds the lock, and the asker stands in the queue.
    Queued(Place),
    /// This acquisition was withdrawn before; it will never be granted.
    Withdrawn,
}

/// What a grant consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The first token of the grant's block.
    pub first: FenceToken,
    /// The last token of the grant's block.
    pub last: FenceToken,
    /// How long the lease has left, as the server set or found it.
    pub remaining: Duration,
    /// Whether others stand in the queue.
    pub contended: bool,
    /// Whether the server's counter was behind the asker's watermark: data was lost, and repaired.
    pub regressed: bool,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// How long the present lease has left; ask again when it expires.
    pub remaining: Duration,
    /// How many other runtimes stand before this one.
    pub ahead: u64,
}

/// The answer to [`Hold`](super::Hold).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldAnswer {
    /// The lease is held and was extended.
    Held {
        /// How long it has left.
        remaining: Duration,
    },
    /// No such lease.
    Gone,
}

/// The answer to [`Release`](super::Release).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// The lease has ended. No next acquisition was queued: none was given, or it was withdrawn.
    Released,
    /// The lock stays closed for a while.
    Kept {
        /// How long it stays closed.
        remaining: Duration,
    },
    /// The [`next`](super::Release::next) acquisition has the lock: the lease has ended, now or
    /// before, and nobody else waited.
    NextGranted(Granted),
    /// The [`next`](super::Release::next) acquisition stands in the queue: the lease has ended, now
    /// or before.
    NextQueued(Place),
    /// No such lease: it ended before, and the next acquisition, if there is one, has nothing.
    Gone,
}

/// The answer to one [`Renewal`](super::Renewal).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewAnswer {
    /// The lease was extended.
    Renewed {
        /// How long it has left.
        remaining: Duration,
    },
    /// No such lease.
    Gone,
    /// The key under the lock's name is not a lease any more.
    Corrupt,
}

/// The answer to [`Withdraw`](super::Withdraw).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithdrawAnswer {
    /// Whether a grant had crossed the withdrawal and was ended.
    pub ended_grant: bool,
}

/// The answer to [`ForceRelease`](super::ForceRelease).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForceReleaseAnswer {
    /// The inspected lease has ended.
    Ended {
        /// A token above that of the ended lease, with which gates can be closed to it; `None`
        /// when the fence counter cannot count any further.
        fence: Option<FenceToken>,
    },
    /// The inspected lease had ended before; nothing was changed.
    Changed,
}
