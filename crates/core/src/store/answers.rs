//! Answers stay exhaustive: a new one has to break the build of whoever decides by it.

use std::time::Duration;

use crate::types::FenceToken;

/// The answer to [`Acquire`](super::Acquire).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireAnswer {
    /// The lease is the asker's, newly or still.
    Granted(Granted),
    /// Somebody else holds the lock, and the asker did not want to wait.
    Busy {
        /// How long the present lease has left.
        remaining: Duration,
    },
    /// Somebody else holds the lock, and the asker stands in the queue.
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
    /// Whether the server's counter was behind what the asker had seen: data was lost, and healed.
    pub regressed: bool,
}

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// How long the present lease has left: when it runs out, it is worth asking again.
    pub remaining: Duration,
    /// How many other runtimes stand before it.
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
    /// The lease has ended; nobody was to be queued, or whoever was had been withdrawn before.
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
