use std::{fmt, future::Future, pin::Pin, sync::Weak};

use super::{
    Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
    Listener, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreError, Waiter, Withdraw,
    WithdrawAnswer,
};
use crate::{
    clock::Instant,
    types::{LockName, RuntimeId, RuntimeLabel},
};

/// A future of the answer of a store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A store of leases: a Redis server, or the memory of this process.
///
/// Every command may run twice, late, or with its answer lost, and ends in the same state. Commands
/// about one name usually run in the order in which they were sent; one that timed out, or had to be
/// sent again, may be overtaken. That is harmless, as every command names its acquisition and changes
/// of holds are numbered. A command resolves by its `deadline`, as
/// [`Indeterminate`](super::StoreErrorKind::Indeterminate) if nothing was heard by then.
///
/// # Errors
///
/// Every method fails with a [`StoreError`] whose kind says whether the command may have run
/// (`Indeterminate`), has not run (`Definite`), cannot run until an operator changes something
/// (`Config`), or met data that is not Leasehold's (`Corrupt`).
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

    /// Extends leases; one answer for each, in order. Never re-creates one.
    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<RenewAnswer>>;

    /// Takes an acquisition back: its place, or its grant, which the next waiter gets. A late copy
    /// of its acquire has no effect.
    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer>;

    /// Returns who holds a lock, and who waits for it.
    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection>;

    /// Ends the lease that was inspected and no other, moves the fence on, tells its runtime, and
    /// grants the lock to the next waiter.
    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer>;
}
