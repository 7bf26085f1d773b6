use std::{collections::BTreeSet, num::NonZeroU64};

use leasehold_core::Instant;

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

/// The key of a thing in `Slots`.
///
/// A key is used again only after four billion others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(NonZeroU64);

/// Things in numbered slots; slots are used again, the lowest first.
///
/// It needs less memory than a tree or a hash map, finds a thing in one step, and shrinks with the
/// highest slot in use.
#[derive(Debug)]
struct Slots<T> {
    all: Vec<Option<Slot<T>>>,
    /// The free slots below the highest one in use.
    vacant: BTreeSet<u32>,
    serial: u32,
}

#[derive(Debug)]
struct Slot<T> {
    serial: u32,
    thing: T,
}

impl Key {
    /// No key is greater.
    const LAST: Self = Self(NonZeroU64::MAX);

    fn new(serial: u32, slot: u32) -> Self {
        let both = u64::from(serial) << 32 | u64::from(slot);
        Self(NonZeroU64::new(both).unwrap_or(NonZeroU64::MAX))
    }

    fn serial(self) -> u32 {
        u32::try_from(self.0.get() >> 32).unwrap_or_default()
    }

    fn slot(self) -> u32 {
        u32::try_from(self.0.get() & u64::from(u32::MAX)).unwrap_or_default()
    }

    fn index(self) -> usize {
        self.slot() as usize
    }
}

impl<T> Slots<T> {
    const fn new() -> Self {
        Self { all: Vec::new(), vacant: BTreeSet::new(), serial: 0 }
    }

    fn insert(&mut self, thing: T) -> Key {
        // Never zero, so that no key is zero.
        self.serial = self.serial.checked_add(1).unwrap_or(1);
        let slot = Slot { serial: self.serial, thing };
        let at = self.vacant.pop_first().unwrap_or_else(|| {
            self.all.push(None);
            // More would not fit into memory.
            u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
        });
        self.all[at as usize] = Some(slot);
        Key::new(self.serial, at)
    }

    fn get(&self, key: Key) -> Option<&T> {
        let slot = self.all.get(key.index())?.as_ref()?;
        (slot.serial == key.serial()).then_some(&slot.thing)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.all.get_mut(key.index())?.as_mut()?;
        (slot.serial == key.serial()).then_some(&mut slot.thing)
    }

    fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let removed = self.all[key.index()].take();
        if key.index() + 1 == self.all.len() {
            self.all.pop();
            self.shrink();
        } else {
            self.vacant.insert(key.slot());
        }
        removed.map(|slot| slot.thing)
    }

    /// Drops what is vacant at the end, and memory once three quarters of it are idle.
    fn shrink(&mut self) {
        while let Some(None) = self.all.last() {
            self.all.pop();
            self.vacant.pop_last();
        }
        if self.all.len() < self.all.capacity() / 4 {
            self.all.shrink_to(self.all.len() * 2);
        }
    }

    fn len(&self) -> usize {
        self.all.len() - self.vacant.len()
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().flatten().map(|slot| &slot.thing)
    }

    /// Takes everything out.
    fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.vacant.clear();
        std::mem::take(&mut self.all).into_iter().flatten().map(|slot| slot.thing)
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

    #[test]
    fn a_key_finds_its_thing_and_no_other() {
        let mut slots = Slots::new();
        let (a, b) = (slots.insert("a"), slots.insert("b"));
        assert_eq!(slots.remove(a), Some("a"));
        assert_eq!(slots.remove(a), None);
        let c = slots.insert("c");
        assert_eq!((c.index(), slots.get(a), slots.get(c)), (a.index(), None, Some(&"c")));
        assert_eq!((slots.get_mut(b).copied(), slots.len()), (Some("b"), 2));
        assert_eq!(slots.drain().collect::<Vec<_>>(), ["c", "b"]);
        assert_eq!((slots.len(), slots.get(b)), (0, None));
    }

    #[test]
    fn memory_shrinks_with_what_is_left() {
        let mut slots = Slots::new();
        let keys: Vec<Key> = (0..10_000).map(|number| slots.insert(number)).collect();
        for key in &keys[10..] {
            slots.remove(*key);
        }
        assert_eq!(slots.len(), 10);
        assert!(slots.all.capacity() < 200, "{}", slots.all.capacity());
        for key in &keys[..10] {
            slots.remove(*key);
        }
        assert!(slots.all.is_empty() && slots.vacant.is_empty());
    }
}
