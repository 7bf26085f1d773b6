use std::{collections::BTreeMap, task::Waker};

use leasehold_core::{StoreError, Terms};

use super::state::Wakers;

/// The number of a task that waits; greater ones came later. It becomes the number of its lease;
/// only the first lease of a turn has the number of the acquisition.
pub(crate) type Ticket = u64;

/// The tasks of one runtime that wait for one name, in the order of their arrival.
// Boxed: very many names are held, and few are waited for.
#[derive(Debug, Default)]
pub(crate) struct LocalQueue(Option<Box<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    waiting: Line,
    /// Tasks whose wait cannot come to anything, until they hear of it.
    failed: BTreeMap<Ticket, StoreError>,
}

#[derive(Debug, Default)]
struct Line {
    /// Its own field, for as a rule there is no other: a tree would cost an allocation for it.
    first: Option<(Ticket, Waiting)>,
    /// Empty without a first one.
    others: BTreeMap<Ticket, Waiting>,
}

impl Line {
    /// A task comes, whose ticket is the greatest.
    fn push(&mut self, ticket: Ticket, waiting: Waiting) {
        match &self.first {
            None => self.first = Some((ticket, waiting)),
            Some(_) => drop(self.others.insert(ticket, waiting)),
        }
    }

    fn remove(&mut self, ticket: Ticket) -> Option<Waiting> {
        match &self.first {
            Some((first, _)) if *first == ticket => {
                let next = self.others.pop_first();
                std::mem::replace(&mut self.first, next).map(|(_, waiting)| waiting)
            }
            _ => self.others.remove(&ticket),
        }
    }

    fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Waiting> {
        match &mut self.first {
            Some((first, waiting)) if *first == ticket => Some(waiting),
            _ => self.others.get_mut(&ticket),
        }
    }

    /// How many tasks stand before one.
    fn before(&self, ticket: Ticket) -> usize {
        let first = self.first.iter().filter(|(first, _)| *first < ticket).count();
        first + self.others.range(..ticket).count()
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    fn take(&mut self) -> impl Iterator<Item = (Ticket, Waiting)> + use<> {
        let Self { first, others } = std::mem::take(self);
        first.into_iter().chain(others)
    }
}

#[derive(Debug)]
struct Waiting {
    terms: Terms,
    waker: Option<Waker>,
}

impl LocalQueue {
    pub(super) fn join(&mut self, ticket: Ticket, terms: Terms, waker: &Waker) {
        let tasks = self.0.get_or_insert_default();
        tasks.waiting.push(ticket, Waiting { terms, waker: Some(waker.clone()) });
    }

    /// A task goes; whether it stood in the queue.
    pub(super) fn leave(&mut self, ticket: Ticket, discarded: &mut Wakers) -> bool {
        let left = self.change(|tasks| {
            tasks.failed.remove(&ticket);
            tasks.waiting.remove(ticket)
        });
        let was_there = left.is_some();
        discarded.extend(left.and_then(|waiting| waiting.waker));
        was_there
    }

    pub(super) fn first(&self) -> Option<(Ticket, Terms)> {
        let (ticket, waiting) = self.0.as_ref()?.waiting.first.as_ref()?;
        Some((*ticket, waiting.terms))
    }

    pub(super) fn has(&mut self, ticket: Ticket) -> bool {
        self.task(ticket).is_some()
    }

    pub(super) fn awaits(&mut self, ticket: Ticket, waker: &Waker, discarded: &mut Wakers) {
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
            for (ticket, waiting) in tasks.waiting.take() {
                tasks.failed.insert(ticket, error.clone());
                wakers.extend(waiting.waker);
            }
            wakers
        })
    }

    /// Sends all tasks away; yields their wakers.
    pub(super) fn dismiss(&mut self) -> Vec<Waker> {
        self.change(|tasks| tasks.waiting.take().filter_map(|(_, one)| one.waker).collect())
    }

    pub(super) fn failure(&mut self, ticket: Ticket) -> Option<StoreError> {
        self.change(|tasks| tasks.failed.remove(&ticket))
    }

    pub(super) fn before(&self, ticket: Ticket) -> usize {
        self.0.as_ref().map_or(0, |tasks| tasks.waiting.before(ticket))
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

    fn task(&mut self, ticket: Ticket) -> Option<&mut Waiting> {
        self.0.as_mut()?.waiting.get_mut(ticket)
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
