use std::time::Duration;

use leasehold_core::{AcquisitionId, Fence, Instant, RuntimeId};

use super::deed::Deed;

/// A worker of a test: a task, a runtime or a process.
pub type Worker = u64;

/// Something that a worker saw, or that its storage did, with one and the same lock.
///
/// All instants are of one clock. On Linux the boot-time clock is the same in all processes of a
/// machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A worker asks for the lock.
    Asked {
        /// Who asks.
        worker: Worker,
        /// Before the request was sent.
        at: Instant,
    },
    /// A worker has a lease; told once per lease, or again with the same fence.
    Granted {
        /// Who has it.
        worker: Worker,
        /// The fence of the lease.
        fence: Fence,
        /// The id of the lease.
        lease: AcquisitionId,
        /// Before the request was sent.
        asked_at: Instant,
        /// When the grant was in the worker's hands.
        granted_at: Instant,
    },
    /// The holder believes in a lease until then, unless it hears more; the last instant counts.
    BelievedUntil {
        /// The lease.
        lease: AcquisitionId,
        /// The end of belief.
        until: Instant,
    },
    /// The storage answered a write.
    Wrote {
        /// The fence that was presented.
        fence: Fence,
        /// The lease that was presented.
        lease: AcquisitionId,
        /// When the worker sent the write.
        at: Instant,
        /// The place of the write in the storage's own order, such as a sequence number that the
        /// storage gives out: the order of the answers says nothing.
        order: u64,
        /// Whether the storage accepted it.
        accepted: bool,
    },
    /// The storage accepted a counter that was read, increased by one and written back.
    Incremented {
        /// Who did it.
        worker: Worker,
    },
    /// The counter, read when all workers had ended; it began at zero.
    CounterRead {
        /// Its value.
        value: u64,
    },
    /// However the lease ends, its holder keeps the lock closed until then.
    ClosedUntil {
        /// The lease.
        lease: AcquisitionId,
        /// Since when: the lease is held, or its lock stays closed.
        from: Instant,
        /// Until when; the greatest counts.
        until: Instant,
    },
    /// The holder gave a lease back: belief ends.
    Released {
        /// The lease.
        lease: AcquisitionId,
        /// Before the release was sent.
        at: Instant,
    },
    /// The holder was told that a lease is lost: belief ends.
    Lost {
        /// The lease.
        lease: AcquisitionId,
        /// When it was told.
        at: Instant,
    },
    /// The holder was told that the server has its lease no more; besides
    /// [`Lost`](Self::Lost).
    ToldGone {
        /// The lease.
        lease: AcquisitionId,
        /// When it was told.
        at: Instant,
    },
    /// A worker does not wait any more: it gave up, or nobody polls its future.
    GaveUp {
        /// Who waited.
        worker: Worker,
        /// When it did so last.
        at: Instant,
    },
    /// The task of a worker that waits was woken, and is polled later: it does not wait meanwhile.
    /// What its runtime has of the lock may keep others out for a claim window.
    Unpolled {
        /// Who waits.
        worker: Worker,
        /// Its runtime.
        runtime: RuntimeId,
        /// When its task was woken.
        from: Instant,
        /// When it is polled, unless it gives up before.
        until: Instant,
        /// For how long an untaken grant is kept for it.
        claim_window: Duration,
    },
    /// Nothing goes wrong for a while: if somebody waits, somebody soon believes.
    Calm {
        /// From when on.
        from: Instant,
        /// Until when.
        until: Instant,
        /// For how long at most somebody waits and nobody believes.
        patience: Duration,
    },
    /// All who ask stay and are polled, and one message goes wrong at a time: no place is lost,
    /// and no grant is left untaken.
    Steady {
        /// From when on.
        from: Instant,
        /// Until when; what is granted shortly before need not be taken.
        until: Instant,
        /// Whether every grant is to be taken: a late copy may be granted what nobody wants.
        takes_all: bool,
    },
    /// Runtimes keep the lock idle, and all who ask stay, wait, are polled at once, and want the
    /// same ttl: an idle turn ends only when its time is over, or another runtime wants the lock.
    Keeps {
        /// For how long after a lease, at most.
        idle: Duration,
        /// The ttl: for how long after the first lease of a turn, at most.
        ttl: Duration,
        /// How long before the end of belief an idle turn ends.
        to_enter: Duration,
    },
    /// A spy between the runtimes and the server saw something.
    Spied {
        /// When.
        at: Instant,
        /// What.
        deed: Deed,
    },
}
