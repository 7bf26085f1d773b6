use std::{collections::BTreeMap, mem, task::Waker};

use leasehold_core::{StoreError, Terms};

/// The number of a task that waits; greater ones came later. It becomes the number of its lease;
/// only the first lease of a turn has the number of the acquisition.
pub(crate) type Ticket = u64;

/// The tasks of one runtime that wait for one name, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct LocalQueue {
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
        self.waiting.insert(ticket, WaitingTask { terms, waker: None });
    }

    /// A task goes; whether it stood in the queue.
    pub(super) fn leave(&mut self, ticket: Ticket, discarded: &mut Vec<Waker>) -> bool {
        self.failed.remove(&ticket);
        let left = self.waiting.remove(&ticket);
        let was_there = left.is_some();
        discarded.extend(left.and_then(|task| task.waker));
        was_there
    }

    pub(super) fn first(&self) -> Option<(Ticket, Terms)> {
        self.waiting.first_key_value().map(|(ticket, task)| (*ticket, task.terms))
    }

    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.waiting.contains_key(&ticket)
    }

    /// Which waker a task has from now on.
    pub(super) fn set_waker(&mut self, ticket: Ticket, waker: &Waker, discarded: &mut Vec<Waker>) {
        if let Some(task) = self.waiting.get_mut(&ticket)
            && !task.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            discarded.extend(task.waker.replace(waker.clone()));
        }
    }

    pub(super) fn waker(&mut self, ticket: Ticket) -> Option<Waker> {
        self.waiting.get_mut(&ticket)?.waker.take()
    }

    /// No wait comes to anything; yields the wakers of those who are to hear of it.
    pub(super) fn fail(&mut self, error: &StoreError) -> Vec<Waker> {
        self.failed.extend(self.waiting.keys().map(|ticket| (*ticket, error.clone())));
        self.dismiss()
    }

    /// Sends all tasks away; yields their wakers.
    pub(super) fn dismiss(&mut self) -> Vec<Waker> {
        let waiting = mem::take(&mut self.waiting);
        waiting.into_values().filter_map(|task| task.waker).collect()
    }

    pub(super) fn failure(&mut self, ticket: Ticket) -> Option<StoreError> {
        self.failed.remove(&ticket)
    }

    pub(super) fn before(&self, ticket: Ticket) -> usize {
        self.waiting.range(..ticket).count()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether no task waits, or has still to hear of a failure.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.failed.is_empty()
    }
}
