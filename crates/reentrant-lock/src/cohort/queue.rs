use std::{
    collections::{BTreeMap, btree_map},
    iter::Chain,
    option,
    task::Waker,
};

use leasehold_core::{StoreError, Ttl};

/// The number of a task that waits; greater ones came later. It becomes the number of its lease;
/// only the first lease of a turn has the number of the acquisition.
pub(crate) type Ticket = u64;

/// The tasks of one runtime that wait for one name, in the order of their arrival.
///
/// It takes no room while no task waits: very many names are held, and few are waited for.
#[derive(Debug, Default)]
pub(crate) struct LocalQueue(Option<Box<Tasks>>);

#[derive(Debug, Default)]
struct Tasks {
    waiting: Line,
    /// Tasks whose wait cannot come to anything, until they hear of it.
    failed: BTreeMap<Ticket, StoreError>,
    /// Wakers that are not needed any more.
    discarded: Discarded,
}

/// Tasks in the order of their tickets.
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

    fn has(&self, ticket: Ticket) -> bool {
        self.first.as_ref().is_some_and(|(first, _)| *first == ticket)
            || self.others.contains_key(&ticket)
    }

    /// How many tasks stand before one.
    fn before(&self, ticket: Ticket) -> usize {
        let first = self.first.iter().filter(|(first, _)| *first < ticket).count();
        first + self.others.range(..ticket).count()
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl IntoIterator for Line {
    type Item = (Ticket, Waiting);
    type IntoIter = Chain<option::IntoIter<Self::Item>, btree_map::IntoIter<Ticket, Waiting>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

/// Wakers that are not needed any more, to be dropped outside of every lock: that may drop a task,
/// and whatever it has of this very name.
#[derive(Debug, Default)]
#[must_use = "they are to be dropped outside of every lock"]
pub(crate) struct Discarded {
    // As a rule there is one: a list would cost an allocation for each task.
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Discarded {
    fn push(&mut self, waker: Waker) {
        match &self.first {
            None => self.first = Some(waker),
            Some(_) => self.others.push(waker),
        }
    }
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
        tasks.waiting.push(ticket, Waiting { ttl, waker: Some(waker.clone()) });
    }

    /// A task goes; whether it stood in the queue.
    pub(super) fn leave(&mut self, ticket: Ticket) -> bool {
        let Some(tasks) = &mut self.0 else { return false };
        tasks.failed.remove(&ticket);
        let left = tasks.waiting.remove(ticket);
        let was_there = left.is_some();
        left.and_then(|waiting| waiting.waker).into_iter().for_each(|waker| self.discard(waker));
        was_there
    }

    /// A waker is not needed any more.
    pub(super) fn discard(&mut self, waker: Waker) {
        self.0.get_or_insert_default().discarded.push(waker);
    }

    /// The wakers that are not needed any more. Asked for after each event, so that an empty queue
    /// takes no room.
    pub(super) fn take_discarded(&mut self) -> Discarded {
        let Some(tasks) = &mut self.0 else { return Discarded::default() };
        let discarded = std::mem::take(&mut tasks.discarded);
        if self.is_done() {
            self.0 = None;
        }
        discarded
    }

    /// The first task, and the ttl it wants.
    pub(super) fn first(&self) -> Option<(Ticket, Ttl)> {
        let (ticket, waiting) = self.waiting()?.first.as_ref()?;
        Some((*ticket, waiting.ttl))
    }

    /// Whether a task stands in the queue.
    pub(super) fn has(&self, ticket: Ticket) -> bool {
        self.waiting().is_some_and(|waiting| waiting.has(ticket))
    }

    /// Remembers whom to wake for a task.
    pub(super) fn awaits(&mut self, ticket: Ticket, waker: &Waker) {
        if let Some(waiting) = self.task(ticket)
            && !waiting.waker.as_ref().is_some_and(|known| known.will_wake(waker))
            && let Some(before) = waiting.waker.replace(waker.clone())
        {
            self.discard(before);
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

    /// Sends all tasks away; yields what wakes them.
    pub(super) fn dismiss(&mut self) -> Vec<Waker> {
        self.change(|tasks| {
            let waiting = std::mem::take(&mut tasks.waiting);
            waiting.into_iter().filter_map(|(_, one)| one.waker).collect()
        })
    }

    /// The failure that a task has to hear of.
    pub(super) fn failure(&mut self, ticket: Ticket) -> Option<StoreError> {
        self.change(|tasks| tasks.failed.remove(&ticket))
    }

    /// How many tasks stand before one.
    pub(super) fn before(&self, ticket: Ticket) -> usize {
        self.waiting().map_or(0, |waiting| waiting.before(ticket))
    }

    /// How many tasks wait.
    pub(super) fn len(&self) -> usize {
        self.waiting().map_or(0, Line::len)
    }

    /// Whether no task waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting().is_none_or(Line::is_empty)
    }

    /// Whether no task waits, or has still to hear of a failure.
    pub(super) fn is_done(&self) -> bool {
        self.0.as_ref().is_none_or(|tasks| tasks.waiting.is_empty() && tasks.failed.is_empty())
    }

    fn waiting(&self) -> Option<&Line> {
        self.0.as_ref().map(|tasks| &tasks.waiting)
    }

    fn task(&mut self, ticket: Ticket) -> Option<&mut Waiting> {
        self.0.as_mut()?.waiting.get_mut(ticket)
    }

    /// Changes who is there.
    fn change<T: Default>(&mut self, change: impl FnOnce(&mut Tasks) -> T) -> T {
        self.0.as_mut().map(|tasks| change(tasks)).unwrap_or_default()
    }
}
