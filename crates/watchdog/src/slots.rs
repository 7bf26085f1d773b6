use std::{collections::BTreeSet, num::NonZeroU64};

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
pub(crate) struct Slots<T> {
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
    pub(crate) const LAST: Self = Self(NonZeroU64::MAX);

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
    pub(crate) const fn new() -> Self {
        Self { all: Vec::new(), vacant: BTreeSet::new(), serial: 0 }
    }

    pub(crate) fn insert(&mut self, thing: T) -> Key {
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

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.all.get(key.index())?.as_ref()?;
        (slot.serial == key.serial()).then_some(&slot.thing)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.all.get_mut(key.index())?.as_mut()?;
        (slot.serial == key.serial()).then_some(&mut slot.thing)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
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

    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.vacant.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().flatten().map(|slot| &slot.thing)
    }

    /// Takes everything out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.vacant.clear();
        std::mem::take(&mut self.all).into_iter().flatten().map(|slot| slot.thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
