use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::stream::{Stream, StreamExt, unfold};
use leasehold_core::{LockName, NamePattern, store::LeaseRecord};

use super::{error::ListError, walk::Walk};
use crate::engine::Engine;

/// A lock that somebody holds, or that is kept closed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedLock {
    /// The name of the lock.
    pub name: LockName,
    /// Who holds it, and who waits for it.
    pub lease: LeaseRecord,
}

impl ListedLock {
    /// Joins a lock and its lease, for a graph or a view of locks that were found in another way.
    pub fn new(name: LockName, lease: LeaseRecord) -> Self {
        Self { name, lease }
    }
}

/// A stream of the locks that somebody holds, or that are kept closed; see `LockRuntime::list`.
///
/// It sends a command when the items that it has are used up, one at a time, and none while nobody
/// polls it. Use it as a [`Stream`], or call [`next`](Self::next).
#[must_use = "a list sends nothing unless it is polled"]
pub struct LockList {
    pattern: NamePattern,
    steps: Arc<AtomicU64>,
    items: Items,
}

type Items = Pin<Box<dyn Stream<Item = Result<ListedLock, ListError>> + Send>>;

impl LockList {
    /// The locks of a runtime's namespace whose names match.
    #[doc(hidden)]
    pub fn new(engine: Arc<Engine>, pattern: NamePattern) -> Self {
        let steps = Arc::default();
        let walk = Walk::new(engine, pattern.clone(), Arc::clone(&steps));
        let items = unfold(walk, |mut walk| async move { Some((walk.next().await?, walk)) });
        Self { pattern, steps, items: Box::pin(items) }
    }

    /// Returns how many steps the list has taken, for a caller that paces itself: each is one command; a look
    /// at locks of a Cluster is a command for each of up to 16.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Returns the next lock; `None` at the end.
    ///
    /// # Errors
    ///
    /// - [`ListError::Lock`] when one lock could not be read.
    /// - [`ListError::Part`] when a part of the store, such as a master of a Cluster, is left out.
    /// - [`ListError::Ended`] when the store gave no usable answer; the next item is `None`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call goes on where it stopped.
    pub async fn next(&mut self) -> Option<Result<ListedLock, ListError>> {
        self.items.next().await
    }
}

impl Stream for LockList {
    type Item = Result<ListedLock, ListError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for LockList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockList").field("pattern", &self.pattern).finish_non_exhaustive()
    }
}
