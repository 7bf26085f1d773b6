use std::time::Duration;

use crate::{
    clock::Instant,
    lease::HoldUpdate,
    types::{AcquisitionId, FenceToken, LockName, RuntimeLabel, Ttl},
};

/// Asks for a lock, by acquisition id: a repeat is answered with the same grant.
#[derive(Debug, Clone, Copy)]
pub struct Acquire<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition; its id is never used for another.
    pub id: AcquisitionId,
    /// How long the lease lives without renewal.
    pub ttl: Ttl,
    /// The largest token that the asking runtime has seen for this name.
    pub watermark: Option<FenceToken>,
    /// The asking runtime's label, kept with the lease.
    pub label: &'a RuntimeLabel,
    /// Whether the runtime may keep the lock idle after its last lease: those who queue behind it
    /// then have it recalled.
    pub keeps: bool,
    /// How to stand in the queue if the lock is taken; `None` tries and does not wait.
    pub wait: Option<Heartbeat>,
    /// Until when the answer is of use.
    pub deadline: Instant,
}

/// A heartbeat of a waiter: it keeps the place in the queue alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// The number of this heartbeat, greater than all earlier ones of the runtime. The grant returns
    /// the greatest one of the place: belief starts when that heartbeat was sent.
    pub number: u64,
    /// How long a grant out of the queue lives until its first renewal, and a place without another
    /// heartbeat; at most the ttl.
    pub claim_window: Duration,
}

impl Heartbeat {
    /// The claim window in whole milliseconds: at most the ttl, at least one.
    pub(crate) fn window(&self, ttl: Ttl) -> Duration {
        whole_millis(self.claim_window).clamp(Duration::from_millis(1), ttl.get())
    }
}

/// One waiter of a batch: [`Acquire`] with a wait, owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiter {
    /// The lock.
    pub name: LockName,
    /// Who waits.
    pub id: AcquisitionId,
    /// How long the lease lives once it is renewed.
    pub ttl: Ttl,
    /// The largest token that the asking runtime has seen for this name.
    pub watermark: Option<FenceToken>,
    /// Whether the runtime may keep the lock idle; see [`Acquire::keeps`].
    pub keeps: bool,
    /// The heartbeat.
    pub heartbeat: Heartbeat,
}

/// Sets the absolute number of holds of a lease, and extends it.
#[derive(Debug, Clone, Copy)]
pub struct Hold<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The fence of the lease.
    pub fence: FenceToken,
    /// The holds, with the number of this change.
    pub update: HoldUpdate,
    /// The ttl to which the lease is extended.
    pub ttl: Ttl,
    /// Until when the answer is of use.
    pub deadline: Instant,
}

/// Ends a lease, and grants the lock to the next waiter in the same step.
#[derive(Debug, Clone, Copy)]
pub struct Release<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The first token of its grant.
    pub fence: FenceToken,
    /// Instead of ending it, keep the lease closed for exactly this long, once; stores take it
    /// from [`Release::keep_in_range`].
    pub keep: Option<Duration>,
    /// The next acquisition of the same runtime, to queue behind the others. Ignored with `keep`.
    pub next: Option<Next<'a>>,
    /// Until when the answer is of use.
    pub deadline: Instant,
}

/// The acquisition with which a runtime queues again when its turn ends.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    /// The acquisition; never used before, and the same in every repeat of the release.
    pub id: AcquisitionId,
    /// How long the new lease lives once it is renewed.
    pub ttl: Ttl,
    /// The largest token that the runtime has seen for this name.
    pub watermark: Option<FenceToken>,
    /// The runtime's label, kept with the lease.
    pub label: &'a RuntimeLabel,
    /// Whether the runtime may keep the lock idle; see [`Acquire::keeps`].
    pub keeps: bool,
    /// The heartbeat under which it is queued.
    pub heartbeat: Heartbeat,
}

impl Release<'_> {
    /// How long to keep the lease closed: whole milliseconds, 1 to [`Ttl::MAX`], the same in every store.
    pub fn keep_in_range(&self) -> Option<Duration> {
        let range = |keep: Duration| keep.clamp(Duration::from_millis(1), Ttl::MAX);
        self.keep.map(|keep| whole_millis(range(keep)))
    }
}

/// A time without its fraction of a millisecond, as Redis counts it.
pub(crate) fn whole_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Extends one lease of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// The lock.
    pub name: LockName,
    /// The acquisition that holds it.
    pub id: AcquisitionId,
    /// The fence of the lease.
    pub fence: FenceToken,
    /// The ttl to which the lease is extended.
    pub ttl: Ttl,
}

/// How long a store remembers a withdrawn acquisition.
pub(crate) const WITHDRAWAL_MARK: Duration = Duration::from_secs(30);

/// Takes back an acquisition that no task waits for any more.
#[derive(Debug, Clone, Copy)]
pub struct Withdraw<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition to take back.
    pub id: AcquisitionId,
    /// Until when the answer is of use.
    pub deadline: Instant,
}

/// Ends the lease of another holder, exactly the one that was inspected.
#[derive(Debug, Clone, Copy)]
pub struct ForceRelease<'a> {
    /// The lock.
    pub name: &'a LockName,
    /// The acquisition that was seen holding it.
    pub id: AcquisitionId,
    /// The fence that was seen.
    pub fence: FenceToken,
    /// Until when the answer is of use.
    pub deadline: Instant,
}
