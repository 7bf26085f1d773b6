use std::{collections::BTreeMap, task::Waker};

use leasehold_core::{StoreError, Ttl};

/// The number of a task that waits; greater ones came later. It becomes the number of its lease.
pub(crate) type Ticket = u64;

/// The tasks of one runtime that wait for one name, in the order of their arrival.
///
/// It takes no room while nobody waits: very many names are held, and few are waited for.
#[derive(Debug, Default)]
pub(crate) struct LocalQueue(Option<Box<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
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
    pub(super) fn join(&mut self, ticket: Ticket, ttl: Ttl, waker: &Waker) {
        let tasks = self.0.get_or_insert_default();
        tasks.waiting.insert(ticket, Waiting { ttl, waker: Some(waker.clone()) });
    }

    /// A task goes; whether it stood in the queue.
    pub(super) fn leave(&mut self, ticket: Ticket) -> bool {
        self.change(|tasks| {
            tasks.failed.remove(&ticket);
            tasks.waiting.remove(&ticket).is_some()
        })
    }

    /// Whoever is first, and the ttl it wants.
    pub(super) fn first(&self) -> Option<(Ticket, Ttl)> {
        let first = self.waiting()?.first_key_value();
        first.map(|(ticket, waiting)| (*ticket, waiting.ttl))
    }

    /// Whether a task stands in the queue.
    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.waiting().is_some_and(|waiting| waiting.contains_key(&ticket))
    }

    /// Remembers whom to wake for a task.
    pub(super) fn awaits(&mut self, ticket: Ticket, waker: &Waker) {
        if let Some(waiting) = self.task(ticket)
            && !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker))
        {
            waiting.waker = Some(waker.clone());
        }
    }

    /// What wakes a task, if it can be woken.
    pub(super) fn waker(&mut self, ticket: Ticket) -> Option<Waker> {
        self.task(ticket)?.waker.take()
    }

    /// No wait comes to anything; yields what wakes those who are to hear of it.
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

    /// Sends everybody away; yields what wakes them.
    pub(super) fn dismiss(&mut self) -> Vec<Waker> {
        self.change(|tasks| {
            let waiting = std::mem::take(&mut tasks.waiting);
            waiting.into_values().filter_map(|one| one.waker).collect()
        })
    }

    /// The failure that a task has to hear of.
    pub(super) fn failure(&mut self, ticket: Ticket) -> Option<StoreError> {
        self.change(|tasks| tasks.failed.remove(&ticket))
    }

    /// How many tasks stand before one.
    pub(super) fn before(&self, ticket: Ticket) -> usize {
        self.waiting().map_or(0, |waiting| waiting.range(..ticket).count())
    }

    /// How many tasks wait.
    pub(super) fn len(&self) -> usize {
        self.waiting().map_or(0, BTreeMap::len)
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting().is_none_or(BTreeMap::is_empty)
    }

    /// Whether nobody waits, or has still to hear of a failure.
    pub(super) fn is_done(&self) -> bool {
        self.0.is_none()
    }

    fn waiting(&self) -> Option<&BTreeMap<Ticket, Waiting>> {
        self.0.as_ref().map(|tasks| &tasks.waiting)
    }

    fn task(&mut self, ticket: Ticket) -> Option<&mut Waiting> {
        self.0.as_mut()?.waiting.get_mut(&ticket)
    }

    /// Changes who is there; once nobody is, there is no room either.
    fn change<T: Default>(&mut self, change: impl FnOnce(&mut Tasks) -> T) -> T {
        let Some(tasks) = &mut self.0 else { return T::default() };
        let answer = change(tasks);
        if tasks.waiting.is_empty() && tasks.failed.is_empty() {
            self.0 = None;
        }
        answer
    }
}
