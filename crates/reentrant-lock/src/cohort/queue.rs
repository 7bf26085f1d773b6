use std::{collections::BTreeMap, task::Waker};

use leasehold_core::{StoreError, Ttl};

/// The number of a task that waits; greater ones came later. It becomes the number of its lease.
pub(crate) type Ticket = u64;

/// The tasks of one runtime that wait for one name, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct LocalQueue {
    waiting: BTreeMap<Ticket, Waiting>,
    /// Tasks whose wait cannot come to anything, until they hear of it.
    failed: BTreeMap<Ticket, StoreError>,
}

#[derive(Debug)]
struct Waiting {
    ttl: Ttl,
    waker: Option<Waker>,
}

impl LocalQueue {
    /// A task stands at the end.
    pub(super) fn join(&mut self, ticket: Ticket, ttl: Ttl) {
        self.waiting.insert(ticket, Waiting { ttl, waker: None });
    }

    /// A task goes; whether it stood in the queue.
    pub(super) fn leave(&mut self, ticket: Ticket) -> bool {
        self.failed.remove(&ticket);
        self.waiting.remove(&ticket).is_some()
    }

    /// Whoever is first, and the ttl it wants.
    pub(super) fn first(&self) -> Option<(Ticket, Ttl)> {
        self.waiting.first_key_value().map(|(ticket, waiting)| (*ticket, waiting.ttl))
    }

    /// Whether a task stands in the queue.
    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.waiting.contains_key(&ticket)
    }

    /// Remembers whom to wake for a task.
    pub(super) fn awaits(&mut self, ticket: Ticket, waker: &Waker) {
        if let Some(waiting) = self.waiting.get_mut(&ticket)
            && !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            waiting.waker = Some(waker.clone());
        }
    }

    /// What wakes a task, if it can be woken.
    pub(super) fn waker(&mut self, ticket: Ticket) -> Option<Waker> {
        self.waiting.get_mut(&ticket).and_then(|waiting| waiting.waker.take())
    }

    /// No wait comes to anything; yields what wakes those who are to hear of it.
    pub(super) fn fail(&mut self, error: &StoreError) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for (ticket, waiting) in std::mem::take(&mut self.waiting) {
            self.failed.insert(ticket, error.clone());
            wakers.extend(waiting.waker);
        }
        wakers
    }

    /// Sends everybody away; yields what wakes them.
    pub(super) fn dismiss(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting).into_values().filter_map(|one| one.waker).collect()
    }

    /// The failure that a task has to hear of.
    pub(super) fn failure(&mut self, ticket: Ticket) -> Option<StoreError> {
        self.failed.remove(&ticket)
    }

    /// How many tasks stand before one.
    pub(super) fn before(&self, ticket: Ticket) -> usize {
        self.waiting.range(..ticket).count()
    }

    /// How many tasks wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether nobody waits, or has still to hear of a failure.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.failed.is_empty()
    }
}
