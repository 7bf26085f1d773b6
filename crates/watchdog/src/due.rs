use std::collections::BTreeSet;

use leasehold_core::Instant;

use crate::slots::{Key, Slots};

/// Things that fall due, each at its own instant, which may change; every step costs O(log n).
#[derive(Debug)]
pub struct DueQueue<T> {
    things: Slots<(Instant, T)>,
    order: BTreeSet<(Instant, Key)>,
}

impl<T> Default for DueQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> DueQueue<T> {
    /// Nothing is due.
    pub fn new() -> Self {
        Self { things: Slots::new(), order: BTreeSet::new() }
    }

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
        if let Some((old, _)) = self.things.get_mut(key)
            && *old != at
        {
            self.order.remove(&(*old, key));
            *old = at;
            self.order.insert((at, key));
        }
    }

    /// A thing by its key.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.things.get(key).map(|(_, thing)| thing)
    }

    /// A thing by its key, to be changed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.things.get_mut(key).map(|(_, thing)| thing)
    }

    /// When the things that fall due until `until` do so, and their keys, earliest first.
    pub fn due(&self, until: Instant) -> impl Iterator<Item = (Instant, Key)> {
        self.order.range(..=(until, Key::LAST)).copied()
    }

    /// When the earliest thing falls due.
    pub fn earliest(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// When a thing falls due.
    pub fn at(&self, key: Key) -> Option<Instant> {
        self.things.get(key).map(|(at, _)| *at)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.things.len()
    }

    /// Every thing, in an order that does not depend on their times.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.things.iter().map(|(_, thing)| thing)
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.order.clear();
        self.things.drain().map(|(_, thing)| thing)
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
        let mut queue = DueQueue::new();
        let a = queue.insert(at(30), "a");
        let b = queue.insert(at(10), "b");
        let c = queue.insert(at(10), "c");
        assert_eq!(queue.earliest(), Some(at(10)));
        assert_eq!(queue.due(at(30)).collect::<Vec<_>>(), [(at(10), b), (at(10), c), (at(30), a)]);
        queue.reschedule(b, at(40));
        assert_eq!(queue.due(at(30)).collect::<Vec<_>>(), [(at(10), c), (at(30), a)]);
        assert_eq!(queue.remove(c), Some("c"));
        assert_eq!(queue.remove(c), None);
        assert_eq!(queue.earliest(), Some(at(30)));
        assert_eq!(queue.drain().count(), 2);
        assert_eq!(queue.earliest(), None);
    }
}
