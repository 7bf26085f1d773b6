use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::Instant;

/// Things that each fall due at some instant, which may change; every step costs O(log n).
#[derive(Debug)]
pub struct DueQueue<T> {
    items: BTreeMap<u64, (Instant, T)>,
    order: BTreeSet<(Instant, u64)>,
    next_key: u64,
}

impl<T> Default for DueQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> DueQueue<T> {
    /// Nothing is due.
    pub fn new() -> Self {
        Self { items: BTreeMap::new(), order: BTreeSet::new(), next_key: 0 }
    }

    /// Adds a thing that falls due at `at`.
    pub fn insert(&mut self, at: Instant, item: T) -> u64 {
        let key = self.next_key;
        self.next_key += 1;
        self.items.insert(key, (at, item));
        self.order.insert((at, key));
        key
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: u64) -> Option<T> {
        let (at, item) = self.items.remove(&key)?;
        self.order.remove(&(at, key));
        Some(item)
    }

    /// Moves a thing to another instant.
    pub fn reschedule(&mut self, key: u64, at: Instant) {
        if let Some((old, _)) = self.items.get_mut(&key) {
            self.order.remove(&(*old, key));
            *old = at;
            self.order.insert((at, key));
        }
    }

    /// A thing by its key.
    pub fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        self.items.get_mut(&key).map(|(_, item)| item)
    }

    /// When the things that fall due until `until` do so, and their keys, earliest first.
    pub fn due(&self, until: Instant) -> impl Iterator<Item = (Instant, u64)> {
        self.order.range(..=(until, u64::MAX)).copied()
    }

    /// When the earliest thing falls due.
    pub fn earliest(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// When a thing falls due.
    pub fn at(&self, key: u64) -> Option<Instant> {
        self.items.get(&key).map(|(at, _)| *at)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Every thing, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.items.iter().map(|(key, (_, item))| (*key, item))
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.order.clear();
        std::mem::take(&mut self.items).into_values().map(|(_, item)| item)
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
