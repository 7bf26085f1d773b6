use std::{
    collections::{HashSet, VecDeque},
    hash::BuildHasherDefault,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use leasehold_core::{
    KnownHash, LockName, NamePattern,
    store::{Inspection, Scan, ScanCursor},
};

use super::{error::ListError, list::ListedLock};
use crate::engine::Engine;

/// How many locks are looked at in one command.
const LOOKS: usize = 16;
/// How many names are remembered, so that none is shown twice.
const SEEN: usize = 100_000;

type Item = Result<ListedLock, ListError>;

/// How far a list has come.
#[derive(Debug)]
// ADR 0022
pub(super) struct Walk {
    engine: Arc<Engine>,
    pattern: NamePattern,
    /// `None` at the end.
    cursor: Option<ScanCursor>,
    /// Names that were not looked at yet.
    names: VecDeque<LockName>,
    /// What was not shown yet.
    items: VecDeque<Item>,
    seen: Seen,
    /// How many steps were taken.
    steps: Arc<AtomicU64>,
}

impl Walk {
    pub(super) fn new(engine: Arc<Engine>, pattern: NamePattern, steps: Arc<AtomicU64>) -> Self {
        let (names, items, seen) = Default::default();
        Self { engine, pattern, cursor: Some(ScanCursor::default()), names, items, seen, steps }
    }

    pub(super) async fn next(&mut self) -> Option<Item> {
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
        match engine.counted(engine.store.ask(now, scan, deadline).await) {
            Ok(page) => {
                let Self { seen, .. } = self;
                self.names.extend(page.names.into_iter().filter(|name| seen.is_new(name)));
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

/// Names that were found; so many that memory stays bounded.
#[derive(Debug, Default)]
struct Seen(HashSet<LockName, BuildHasherDefault<KnownHash>>);

impl Seen {
    fn is_new(&mut self, name: &LockName) -> bool {
        if self.0.len() < SEEN {
            return self.0.insert(name.clone());
        }
        !self.0.contains(name)
    }
}
