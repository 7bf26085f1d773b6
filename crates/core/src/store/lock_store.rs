use std::{fmt, future::Future, pin::Pin, sync::Weak, time::Duration};

use super::{
    AcquireAnswer, ForceReleaseAnswer, HoldAnswer, Inspection, Listener, ReleaseAnswer,
    RenewAnswer, Scan, ScanPage, StoreError, WithdrawAnswer,
};
use crate::{
    clock::Instant,
    lease::HoldUpdate,
    types::{Acks, AcquisitionId, FenceToken, LockName, RuntimeId, RuntimeLabel, Ttl},
};

/// A future of the answer of a store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A store of leases: a Redis server, or the memory of this process.
///
/// Every command may run twice, late, or with its answer lost, and ends in the same state. Commands
/// about one name usually run in the order in which they were sent; one that timed out, or had to
/// be sent again, may be overtaken. That is harmless, as every command names its acquisition and
/// changes of holds are numbered. A command resolves by its `deadline`, as
/// [`Indeterminate`](super::StoreErrorKind::Indeterminate) if nothing was heard by then.
///
/// # Errors
///
/// Every method fails with a [`StoreError`] whose kind says whether the command may have run
/// (`Indeterminate`), has not run (`Definite`), cannot run until an operator changes something
/// (`Config`), or met data that is not Leasehold's (`Corrupt`). A grant or an extension that needs
/// acknowledgements, and has too few of them, fails as `Indeterminate`, see
/// [`StoreError::is_unacknowledged`].
///
/// # Cancel safety
///
/// Dropping a future does not take its command back: treat it as indeterminate.
pub trait LockStore: fmt::Debug + Send + Sync + 'static {
    /// Grants a lock that nobody holds or waits for. Otherwise it queues the asker, or returns how
    /// long the present lease has left.
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer>;

    /// Repeats the acquires of many waiters; one answer for each, in order. Each counts as an
    /// [`acquire`](Self::acquire) of its own. A corrupt key spoils only its own answer.
    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>>;

    /// Passes all pushes for a runtime to a listener, until the listener is dropped or replaced.
    ///
    /// The first is [`Push::Listening`](super::Push::Listening), again after each reconnect.
    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>);

    /// Sets the absolute number of holds of a lease and extends it; never grants.
    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer>;

    /// Ends a lease and grants the lock to the next waiter, or keeps it for exactly a given time.
    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer>;

    /// Extends leases; one answer or failure for each, in order. Never re-creates one.
    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<RenewAnswer, StoreError>>>;

    /// Takes an acquisition back: its place, or its grant, which the next waiter gets. A late copy
    /// of its acquire has no effect.
    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer>;

    /// Returns who holds a lock, and who waits for it.
    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection>;

    /// Inspects many locks; one answer for each, in order. A corrupt key spoils only its own answer.
    ///
    /// By default one after the other.
    fn inspect_all<'a>(
        &'a self,
        names: &'a [LockName],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<Inspection, StoreError>>> {
        Box::pin(async move {
            let mut seen = Vec::with_capacity(names.len());
            for name in names {
                seen.push(self.inspect(name, deadline).await);
            }
            Ok(seen)
        })
    }

    /// Names some of the locks that the store knows, held or not, in one step that is short however
    /// many there are.
    ///
    /// A lock that is there from the first step to the last is named, unless the store moves it
    /// meanwhile from one part to another.
    fn scan<'a>(&'a self, command: Scan<'a>) -> StoreFuture<'a, ScanPage>;

    /// Ends the lease that was inspected and no other, moves the fence on, tells its runtime, and
    /// grants the lock to the next waiter.
    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer>;

    /// Which part of the store a name lives in. Names of different parts travel in different
    /// batches, so that a part that is down delays nobody else's. It may change at any time; a batch
    /// that mixes parts still works.
    fn shard(&self, _name: &LockName) -> usize {
        0
    }

    /// Whether the store is in the memory of this process: what was not released ends with it, and
    /// needs no warning. Default: no.
    fn ends_with_process(&self) -> bool {
        false
    }
}

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
    /// Which acknowledgements a grant needs.
    pub acks: Acks,
    /// Until when the answer is of use.
    pub deadline: Instant,
}

/// A heartbeat of a waiter: it keeps the place in the queue alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// The number of this heartbeat, greater than all earlier ones of the runtime. The grant
    /// returns the greatest one of the place: belief starts when that heartbeat was sent.
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
    /// Which acknowledgements the extension needs.
    pub acks: Acks,
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
    /// How long to keep the lease closed: in whole milliseconds, moved into 1 ms to [`Ttl::MAX`],
    /// so that every store keeps it equally long.
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
    /// Which acknowledgements the extension needs.
    pub acks: Acks,
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
