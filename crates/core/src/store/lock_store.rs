use std::{fmt, future::Future, pin::Pin};

use super::{
    Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
    Release, ReleaseAnswer, RenewAnswer, Renewal, StoreError, Withdraw, WithdrawAnswer,
};
use crate::{clock::Instant, words::LockName};

/// The answer of a store, on its way.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What keeps the leases: a Redis server, or the memory of this process.
///
/// Every command may run twice, late, or with its answer lost, and ends in the same state.
/// Commands about one name are executed in the order in which they were sent, as long as none of
/// them timed out and none had to be sent again: a server that does not know a script gets the
/// command anew with the script's body, and a later command may overtake it. That is harmless,
/// as every command names its acquisition and changes of holds are numbered. A command resolves by its `deadline`, as
/// [`Indeterminate`](super::StoreErrorKind::Indeterminate) if nothing was heard by then.
///
/// # Errors
///
/// Every method fails with a [`StoreError`] whose kind says whether the command may have run
/// (`Indeterminate`), has not run (`Definite`), cannot run until somebody changes something
/// (`Config`), or met data that is not Leasehold's (`Corrupt`). The errors are the same for all.
///
/// # Cancel safety
///
/// Dropping a future does not take its command back: treat it as indeterminate.
pub trait LockStore: fmt::Debug + Send + Sync + 'static {
    /// Grants a free lock, or tells how long the present lease has left.
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer>;

    /// Sets the absolute number of holds of a lease and extends it; never grants.
    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer>;

    /// Ends a lease, or keeps it for exactly a given time.
    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer>;

    /// Extends leases; one answer for each, in order. Never re-creates one.
    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<RenewAnswer>>;

    /// Takes an acquisition back, whatever came of it; a late copy of its acquire stays without effect.
    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer>;

    /// Tells who holds a lock.
    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection>;

    /// Ends the lease that was inspected and no other, moves the fence on, tells its runtime.
    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer>;
}
