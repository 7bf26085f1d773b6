use std::{collections::BTreeSet, mem};

use leasehold_core::Instant;
use slotmap::{SlotMap, new_key_type};

new_key_type! {
    /// The key of a thing in a [`DueQueue`]: it finds nothing once the thing is taken out.
    pub struct Key;
}

/// Things that fall due, each at its own instant, which may change.
#[derive(Debug)]
// ADR 0048
pub struct DueQueue<T> {
    things: SlotMap<Key, (Instant, T)>,
    order: BTreeSet<(Instant, Key)>,
    /// Until when the task sleeps that waits for what is due.
    sleeps_until: Instant,
}

impl<T> Default for DueQueue<T> {
    fn default() -> Self {
        let (things, order) = (SlotMap::with_key(), BTreeSet::new());
        Self { things, order, sleeps_until: Instant::default() }
    }
}

impl<T> DueQueue<T> {
    /// Adds a thing that falls due at `at`.
    pub fn insert(&mut self, at: Instant, thing: T) -> Key {
        let key = self.things.insert((at, thing));
        self.order.insert((at, key));
        key
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let (at, thing) = self.things.remove(key)?;
        self.order.remove(&(at, key));
        Some(thing)
    }

    /// Moves a thing to another instant.
    pub fn reschedule(&mut self, key: Key, at: Instant) {
        let Some((present, _)) = self.things.get_mut(key) else { return };
        let old = mem::replace(present, at);
        if old != at {
            self.order.remove(&(old, key));
            self.order.insert((at, key));
        }
    }

    /// A thing by its key.
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        self.things.get(key).map(|(_, thing)| thing)
    }

    /// A thing by its key, to be changed.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.things.get_mut(key).map(|(_, thing)| thing)
    }

    /// When the things that fall due until `until` do so, and their keys, earliest first.
    pub fn due(&self, until: Instant) -> impl Iterator<Item = (Instant, Key)> {
        self.order.iter().copied().take_while(move |(at, _)| *at <= until)
    }

    /// When the first thing falls due.
    pub fn earliest(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// When the task that waits for what is due is to look again after `now`, at `latest` in any
    /// case.
    pub fn sleep_until(&mut self, now: Instant, latest: Instant) -> Instant {
        // A time that it was woken for stays, also when its thing is gone: the next thing is due a
        // little later as a rule, and then need not wake the task again.
        let known = Some(self.sleeps_until).filter(|at| *at > now);
        self.sleeps_until = self.earliest().into_iter().chain(known).fold(latest, Instant::min);
        self.sleeps_until
    }

    /// Notes that something falls due at `at`; whether that task has to be woken for it, said once.
    #[must_use]
    pub fn must_wake_for(&mut self, at: Instant) -> bool {
        let wakes = at < self.sleeps_until;
        self.sleeps_until = self.sleeps_until.min(at);
        wakes
    }

    /// When a thing falls due.
    pub(crate) fn at(&self, key: Key) -> Option<Instant> {
        self.things.get(key).map(|(at, _)| *at)
    }

    /// How many things there are.
    pub(crate) fn len(&self) -> usize {
        self.things.len()
    }

    /// Every thing, in an order that does not depend on their times.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.things.values().map(|(_, thing)| thing)
    }

    /// Takes everything out.
    pub(crate) fn drain(&mut self) -> Vec<T> {
        self.order.clear();
        self.things.drain().map(|(_, (_, thing))| thing).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    #[test]
    fn things_come_out_in_the_order_of_their_time() {
        let mut queue = DueQueue::default();
        let a = queue.insert(at(30), "a");
        let b = queue.insert(at(10), "b");
        let c = queue.insert(at(10), "c");
        assert_eq!(queue.earliest(), Some(at(10)));
        assert_eq!(queue.due(at(30)).collect::<Vec<_>>(), [(at(10), b), (at(10), c), (at(30), a)]);
        queue.reschedule(b, at(40));
        assert_eq!((queue.at(b), queue.len()), (Some(at(40)), 3));
        assert_eq!(queue.due(at(30)).collect::<Vec<_>>(), [(at(10), c), (at(30), a)]);
        assert_eq!(queue.remove(c), Some("c"));
        assert_eq!(queue.remove(c), None);
        assert_eq!(queue.earliest(), Some(at(30)));
        assert_eq!(queue.drain().len(), 2);
        assert_eq!((queue.earliest(), queue.len()), (None, 0));
    }

    #[test]
    fn a_task_is_woken_for_what_falls_due_before_it_looks_again() {
        let mut queue = DueQueue::default();
        let a = queue.insert(at(30), "a");
        assert_eq!(queue.sleep_until(at(0), at(99)), at(30));
        assert!(!queue.must_wake_for(at(30)));
        assert!(queue.must_wake_for(at(20)) && !queue.must_wake_for(at(20)), "said once");
        queue.remove(a);
        assert_eq!(queue.sleep_until(at(0), at(99)), at(20), "it stays");
        assert_eq!(queue.sleep_until(at(20), at(99)), at(99));
    }
}
