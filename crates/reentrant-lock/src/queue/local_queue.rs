use std::{collections::BTreeMap, task::Waker};

use leasehold_core::{StoreError, Terms};

/// The number of a task that waits; greater ones came later. It becomes the number of its lease;
/// only the first lease of a turn has the number of the acquisition.
pub(crate) type Ticket = u64;

/// The tasks of one runtime that wait for one name, in the order of their arrival.
// Boxed: very many names are held, and few are waited for.
#[derive(Debug, Default)]
pub(crate) struct LocalQueue(Option<Box<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    waiting: BTreeMap<Ticket, WaitingTask>,
    /// Tasks whose wait cannot come to anything, until they hear of it.
    failed: BTreeMap<Ticket, StoreError>,
}

#[derive(Debug)]
struct WaitingTask {
    terms: Terms,
    waker: Option<Waker>,
}

impl LocalQueue {
    /// A task comes, which leaves its waker when it is polled.
    pub(super) fn join(&mut self, ticket: Ticket, terms: Terms) {
        self.0.get_or_insert_default().waiting.insert(ticket, WaitingTask { terms, waker: None });
    }

    /// A task goes; whether it stood in the queue.
    pub(super) fn leave(&mut self, ticket: Ticket, discarded: &mut Vec<Waker>) -> bool {
        let left = self.change(|tasks| {
            tasks.failed.remove(&ticket);
            tasks.waiting.remove(&ticket)
        });
        let was_there = left.is_some();
        discarded.extend(left.and_then(|waiting| waiting.waker));
        was_there
    }

    pub(super) fn first(&self) -> Option<(Ticket, Terms)> {
        let (ticket, waiting) = self.0.as_ref()?.waiting.first_key_value()?;
        Some((*ticket, waiting.terms))
    }

    pub(super) fn has(&mut self, ticket: Ticket) -> bool {
        self.task(ticket).is_some()
    }

    pub(super) fn awaits(&mut self, ticket: Ticket, waker: &Waker, discarded: &mut Vec<Waker>) {
        if let Some(waiting) = self.task(ticket)
            && !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            discarded.extend(waiting.waker.replace(waker.clone()));
        }
    }

    pub(super) fn waker(&mut self, ticket: Ticket) -> Option<Waker> {
        self.task(ticket)?.waker.take()
    }

    /// No wait comes to anything; yields the wakers of those who are to hear of it.
    pub(super) fn fail(&mut self, error: &StoreError) -> Vec<Waker> {
        self.change(|tasks| {
            let mut wakers = Vec::new();
            for (ticket, waiting) in std::mem::take(&mut tasks.waiting) {
                tasks.failed.insert(ticket, error.clone());
                wakers.extend(waiting.waker);
            }
            wakers
        })
    }

    /// Sends all tasks away; yields their wakers.
    pub(super) fn dismiss(&mut self) -> Vec<Waker> {
        self.change(|tasks| {
            let waiting = std::mem::take(&mut tasks.waiting);
            waiting.into_values().filter_map(|one| one.waker).collect()
        })
    }

    pub(super) fn failure(&mut self, ticket: Ticket) -> Option<StoreError> {
        self.change(|tasks| tasks.failed.remove(&ticket))
    }

    pub(super) fn before(&self, ticket: Ticket) -> usize {
        self.0.as_ref().map_or(0, |tasks| tasks.waiting.range(..ticket).count())
    }

    pub(super) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |tasks| tasks.waiting.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    /// Whether no task waits, or has still to hear of a failure.
    pub(super) fn is_done(&self) -> bool {
        self.is_empty() && self.0.as_ref().is_none_or(|tasks| tasks.failed.is_empty())
    }

    fn task(&mut self, ticket: Ticket) -> Option<&mut WaitingTask> {
        self.0.as_mut()?.waiting.get_mut(&ticket)
    }

    /// Changes who is there; an empty queue takes no room.
    fn change<T: Default>(&mut self, change: impl FnOnce(&mut Tasks) -> T) -> T {
        let changed = self.0.as_mut().map(|tasks| change(tasks)).unwrap_or_default();
        if self.is_done() {
            self.0 = None;
        }
        changed
    }
}
