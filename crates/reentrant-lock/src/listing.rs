//! The locks of a namespace that somebody holds, one after the other.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    hash::BuildHasherDefault,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::stream::{Stream, StreamExt, unfold};
use leasehold_core::{
    KnownHash, LockName, NamePattern, StoreError,
    store::{Inspection, LeaseRecord, Scan, ScanCursor},
};

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
        let walk = Walk {
            engine,
            pattern: pattern.clone(),
            cursor: Some(ScanCursor::default()),
            names: VecDeque::new(),
            items: VecDeque::new(),
            seen: HashSet::default(),
            steps: Arc::clone(&steps),
        };
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

/// Why some locks, or one, are missing in a [`LockList`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// This lock could not be read, as when its key holds data of another program; the list goes
    /// on.
    #[error(transparent)]
    Lock(StoreError),
    /// A part of the store, such as a master of a Cluster, did not answer; the list goes on with
    /// the others.
    #[error("a part of the store is left out: {0}")]
    Part(StoreError),
    /// The store gave no usable answer; this is the end of the list.
    #[error("the list is not complete: {0}")]
    Ended(StoreError),
}

impl ListError {
    /// Returns the failure of the store.
    pub fn store_error(&self) -> &StoreError {
        let (Self::Lock(error) | Self::Part(error) | Self::Ended(error)) = self;
        error
    }
}

/// How many locks are looked at in one command.
const LOOKS: usize = 16;
/// How many names are remembered, so that none is shown twice.
const SEEN: usize = 100_000;

/// How far a list has come.
#[derive(Debug)]
// ADR 0022
struct Walk {
    engine: Arc<Engine>,
    pattern: NamePattern,
    /// `None` at the end.
    cursor: Option<ScanCursor>,
    /// Names that were not looked at yet.
    names: VecDeque<LockName>,
    /// What was not shown yet.
    items: VecDeque<Result<ListedLock, ListError>>,
    /// Names that were found; so many that memory stays bounded.
    seen: HashSet<LockName, BuildHasherDefault<KnownHash>>,
    /// How many steps were taken.
    steps: Arc<AtomicU64>,
}

impl Walk {
    async fn next(&mut self) -> Option<Result<ListedLock, ListError>> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            if !self.names.is_empty() {
                self.look().await;
            } else if let Some(cursor) = self.cursor.take() {
                self.step(cursor).await;
            } else {
                return None;
            }
        }
    }

    /// Finds some names.
    async fn step(&mut self, cursor: ScanCursor) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let engine = &self.engine;
        if let Err(error) = engine.check_process() {
            return self.items.push_back(Err(ListError::Ended(error)));
        }
        let now = engine.clock.now();
        let deadline = now + engine.timing.command_timeout;
        let scan = Scan { pattern: self.pattern.clone(), cursor };
        match engine.store.ask(now, scan, deadline).await {
            Ok(page) => {
                for name in page.names {
                    let is_new = if self.seen.len() < SEEN {
                        self.seen.insert(name.clone())
                    } else {
                        !self.seen.contains(&name)
                    };
                    self.names.extend(is_new.then_some(name));
                }
                self.items.extend(page.failed.map(|error| Err(ListError::Part(error))));
                self.cursor = page.next;
            }
            Err(error) => self.items.push_back(Err(ListError::Ended(error))),
        }
    }

    /// Looks at some of the names. A lock that was given back meanwhile is left out.
    async fn look(&mut self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let names: Vec<_> = self.names.drain(..LOOKS.min(self.names.len())).collect();
        match self.engine.inspect_all(names.clone()).await {
            Ok(seen) => {
                let item = |(name, seen)| match seen {
                    Ok(Inspection::Held(lease)) => Some(Ok(ListedLock { name, lease })),
                    Ok(Inspection::Free { .. }) => None,
                    Err(error) => Some(Err(ListError::Lock(error))),
                };
                self.items.extend(names.into_iter().zip(seen).filter_map(item));
            }
            Err(error) => {
                self.names.clear();
                self.cursor = None;
                self.items.push_back(Err(ListError::Ended(error)));
            }
        }
    }
}
