//! What a store tells a runtime. Answers are exhaustive enums: a new one must break the build of
//! code that matches them.

use std::{fmt, time::Duration};

use crate::types::{AcquisitionId, Fence, LockName, Mode};

/// The answer to [`Acquire`](super::Acquire).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcquireAnswer {
    /// The asker holds the lease, newly or still.
    Granted(Granted),
    /// Another acquisition holds the lock, and the command does not wait.
    Busy {
        /// How long the present lease has left.
        remaining: Duration,
        /// Whether its runtime may keep the lock idle: it then passes it on when another one
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
    pub first: Fence,
    /// The last token of the grant's block.
    pub last: Fence,
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
    /// No such lease: it has ended on the server.
    Gone,
    /// No such lease: the server has lost the data of the lock.
    DataLost,
}

/// The answer to [`Release`](super::Release).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// The lease has ended. No next acquisition was queued: none was given, it was withdrawn, or the queue is
    /// of another type.
    Released,
    /// The lock stays closed for a while.
    Kept {
        /// How long it stays closed.
        remaining: Duration,
    },
    /// The lease has ended, now or before, and the next acquisition has the lock: nobody waited.
    NextGranted(Granted),
    /// The lease has ended, now or before, and the next acquisition stands in the queue.
    NextQueued(Place),
    /// No such lease: it ended before, and the next acquisition, if there is one, has nothing.
    Gone,
    /// As [`Gone`](Self::Gone), and the server has lost the data of the lock.
    DataLost,
}

/// The answer to one [`Renewal`](super::Renewal).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenewAnswer {
    /// The lease was extended.
    Renewed {
        /// How long it has left.
        remaining: Duration,
    },
    /// No such lease: it has ended on the server.
    Gone,
    /// No such lease: the server has lost the data of the lock.
    DataLost,
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
        /// A token above that of the ended lease, to close gates to it; `None` if none is left.
        fence: Option<Fence>,
    },
    /// The inspected lease had ended before; nothing was changed.
    Changed,
}

/// What a look at a lock shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspection {
    /// Nobody holds it.
    Free {
        /// The last token that was granted, if the counter is still known.
        last_fence: Option<Fence>,
    },
    /// Somebody holds it.
    Held(LeaseRecord),
}

/// A runtime that waits for a lock, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaiterRecord {
    /// The acquisition that waits.
    pub id: AcquisitionId,
    /// Whether it waits to write, or to read.
    pub mode: Mode,
    /// The label of its runtime.
    pub label: String,
    /// How long ago it queued, by the server's clock.
    pub waiting_for: Duration,
    /// How long ago it was last heard, by the server's clock.
    pub silent_for: Duration,
}

/// A lease as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The acquisition that holds the lock; of readers, the one that opened their phase.
    pub id: AcquisitionId,
    /// Whether a writer holds it, or readers do.
    pub mode: Mode,
    /// The readers, by their ids; at most 128.
    pub readers: Vec<AcquisitionId>,
    /// The first token of its grant; that of the present holder's lease may be greater.
    pub fence: Fence,
    /// The nested holds; 0 when the lease is only kept closed.
    pub holds: u32,
    /// How long the lease has left without renewal.
    pub remaining: Duration,
    /// The label of the holder's runtime.
    pub label: String,
    /// How long ago the lease was granted, by the server's clock.
    pub held_for: Duration,
    /// Whether the lease was released and is only kept closed for a while.
    pub kept: bool,
    /// Whether the holder's runtime may keep the lock idle, and passes it on when another one
    /// queues. False when the lease is only kept closed.
    pub keeps: bool,
    /// Whether no task holds the lock. Only the runtime that keeps it knows; in others it is false.
    pub idle: bool,
    /// The runtimes that wait, the next one first; at most the first 128.
    pub waiters: Vec<WaiterRecord>,
}

/// A message that a store sends to a runtime unasked. It may come late, twice, or never.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// A waiter of the runtime was granted the lock.
    Granted {
        /// The lock.
        name: LockName,
        /// The acquisition that was granted it.
        id: AcquisitionId,
        /// The grant. Its remaining time counts from the grant, at a time unknown to the runtime.
        granted: Granted,
        /// The number of the last heartbeat of the waiter that the store had received.
        heartbeat: u64,
    },
    /// An operator ended a lease of the runtime.
    ForceReleased {
        /// The lock.
        name: LockName,
        /// The acquisition that held it.
        id: AcquisitionId,
        /// The first token of its grant.
        fence: Fence,
    },
    /// Another runtime waits for a lock that this runtime keeps, or a writer for one that it reads; the first of
    /// them in the queue repeats it with its heartbeats.
    Wanted {
        /// The lock.
        name: LockName,
        /// The acquisition that holds it.
        id: AcquisitionId,
        /// The first token of its grant.
        fence: Fence,
    },
    /// A message that no script of this store sends. It was dropped.
    Unexpected,
    /// A message that is not understood. It was dropped.
    Unreadable,
    /// Pushes arrive from now on. Earlier ones may be lost, so ask again.
    Listening,
}

/// Receives the pushes of a store for a runtime, on a task of the store: it must not block.
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// A push has arrived. Any client that may publish on the channel of the runtime can have written it.
    fn on_push(&self, push: Push);

    /// Whether a push about this acquisition of this lock comes from somebody who has seen its id in
    /// the store. A runtime knows the words of its ids; without words, every push is believed.
    fn proves(&self, _name: &LockName, _id: AcquisitionId) -> bool {
        true
    }
}
