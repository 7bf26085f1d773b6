use std::{fmt, future::Future, pin::Pin, sync::Weak, time::Duration};

use super::{Command, Inspect, Inspection, Listener, Reply, Request, StoreError, StoreErrorKind};
use crate::{
    clock::Instant,
    types::{LockName, RuntimeId, Ttl},
};

/// A future of the reply of a store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A store of leases: Redis servers, or the memory of this process.
///
/// Every command may run twice, late, or with its reply lost, and ends in the same state. Commands
/// about one name usually run in the order in which they were sent; one that timed out, or had to
/// be sent again, may be overtaken. That is harmless, as every command names its acquisition and
/// changes of holds are numbered.
// ADR 0002
pub trait LockStore: fmt::Debug + Send + Sync + 'static {
    /// Sends a command, whose reply is of the same kind. It resolves by `deadline`, as
    /// [`Indeterminate`](StoreErrorKind::Indeterminate) if nothing was heard by then; a runtime that is
    /// given a store of others sees to that with a timer.
    ///
    /// # Errors
    ///
    /// The kind of the [`StoreError`] says whether the command may have run (`Indeterminate`), has not
    /// run (`Definite`), cannot run until an operator changes something (`Config`), or met data that is
    /// not Leasehold's (`Corrupt`). A grant or an extension that needs acknowledgements, and has too
    /// few of them, fails as `Indeterminate`, see [`StoreError::is_unacknowledged`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the command back: treat it as indeterminate.
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply>;

    /// Passes all pushes for a runtime to a listener, until the listener is dropped or replaced.
    ///
    /// The first is [`Push::Listening`](super::Push::Listening), again after each reconnect.
    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>);

    /// Which part of the store a name lives in. Names of different parts travel in different
    /// batches, so that a part that is down delays nobody else's. It may change at any time; a batch
    /// that mixes parts still works.
    // ADR 0034
    fn shard(&self, _name: &LockName) -> usize {
        0
    }

    /// Whether the store is in the memory of this process: what was not released ends with it, and
    /// needs no warning. Default: no.
    fn ends_with_process(&self) -> bool {
        false
    }

    /// The longest ttl that the store grants, and the longest time for which it keeps a lock closed
    /// after its lease: what asks for more is refused before it is sent. Default: [`Ttl::MAX`].
    fn longest_ttl(&self) -> Duration {
        Ttl::MAX
    }
}

/// Sends commands whose replies have the type of their command.
pub trait Ask: LockStore {
    /// Sends a command, as [`send`](LockStore::send) does.
    ///
    /// # Errors
    ///
    /// As [`send`](LockStore::send).
    ///
    /// # Cancel safety
    ///
    /// As [`send`](LockStore::send).
    fn ask<R: Request>(
        &self,
        request: R,
        deadline: Instant,
    ) -> impl Future<Output = Result<R::Reply, StoreError>> + Send {
        let sending = self.send(request.into(), deadline);
        async move { of_its_kind(sending.await?) }
    }

    /// Looks at one lock.
    ///
    /// # Errors
    ///
    /// As [`send`](LockStore::send).
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    fn inspect(
        &self,
        name: &LockName,
        deadline: Instant,
    ) -> impl Future<Output = Result<Inspection, StoreError>> + Send {
        let seen = self.ask(Inspect { names: vec![name.clone()] }, deadline);
        async move { seen.await.and_then(only) }
    }
}

impl<S: LockStore + ?Sized> Ask for S {}

/// The reply as one to its command.
///
/// # Errors
///
/// [`StoreError`] when it is one to a command of another kind.
pub fn of_its_kind<T: TryFrom<Reply, Error = Reply>>(reply: Reply) -> Result<T, StoreError> {
    T::try_from(reply).map_err(|_| {
        let what = "the store has replied to a command of another kind";
        let remedy = "report this to those who made the store";
        StoreError::new(StoreErrorKind::Indeterminate, what, remedy)
    })
}

/// The only reply of a batch of one.
///
/// # Errors
///
/// [`StoreError`] of that command, or because there is no reply.
pub fn only<T>(replies: Vec<Result<T, StoreError>>) -> Result<T, StoreError> {
    let none = || {
        let what = "the store has not replied to the only command of a batch";
        let remedy = "report this to those who made the store";
        Err(StoreError::new(StoreErrorKind::Indeterminate, what, remedy))
    };
    replies.into_iter().next().unwrap_or_else(none)
}
