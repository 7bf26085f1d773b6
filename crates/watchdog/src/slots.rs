use std::{cmp::Reverse, collections::BinaryHeap, num::NonZeroU32};

/// The key of a thing in [`Slots`]; used again only after four billion others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    serial: NonZeroU32,
    slot: u32,
}

/// Things in numbered slots; slots are used again, the lowest first.
///
/// It needs less memory than a tree or a hash map, and shrinks with the highest slot in use.
#[derive(Debug)]
pub struct Slots<T> {
    all: Vec<Option<Slot<T>>>,
    /// The free slots below the highest one in use, and some that are gone.
    vacant: BinaryHeap<Reverse<u32>>,
    used: usize,
    serial: NonZeroU32,
}

#[derive(Debug)]
struct Slot<T> {
    serial: NonZeroU32,
    thing: T,
}

impl Key {
    /// No key is greater.
    pub(crate) const LAST: Self = Self { serial: NonZeroU32::MAX, slot: u32::MAX };

    fn index(self) -> usize {
        self.slot as usize
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { all: Vec::new(), vacant: BinaryHeap::new(), used: 0, serial: NonZeroU32::MAX }
    }
}

impl<T> Slots<T> {
    /// Adds a thing.
    pub fn insert(&mut self, thing: T) -> Key {
        self.serial = self.serial.checked_add(1).unwrap_or(NonZeroU32::MIN);
        let slot = self.vacant().unwrap_or_else(|| {
            self.all.push(None);
            // More would not fit into memory.
            u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
        });
        let key = Key { serial: self.serial, slot };
        self.all[key.index()] = Some(Slot { serial: key.serial, thing });
        self.used += 1;
        key
    }

    /// The lowest free slot below the highest one in use.
    fn vacant(&mut self) -> Option<u32> {
        loop {
            let Reverse(slot) = self.vacant.pop()?;
            if matches!(self.all.get(slot as usize), Some(None)) {
                return Some(slot);
            }
        }
    }

    /// A thing by its key.
    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.all.get(key.index())?.as_ref()?;
        (slot.serial == key.serial).then_some(&slot.thing)
    }

    /// A thing by its key, to be changed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.all.get_mut(key.index())?.as_mut()?;
        (slot.serial == key.serial).then_some(&mut slot.thing)
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let removed = self.all[key.index()].take();
        self.used -= 1;
        if key.index() + 1 == self.all.len() {
            while let Some(None) = self.all.last() {
                self.all.pop();
            }
            shrink(&mut self.all);
            if self.used == self.all.len() {
                // What is left of the list is gone.
                self.vacant.clear();
                self.vacant.shrink_to(LITTLE);
            }
        } else {
            self.vacant.push(Reverse(key.slot));
        }
        removed.map(|slot| slot.thing)
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Every thing, in the order of the slots.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().flatten().map(|slot| &slot.thing)
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.vacant.clear();
        self.used = 0;
        std::mem::take(&mut self.all).into_iter().flatten().map(|slot| slot.thing)
    }
}

/// So much room for things is kept: with few things, no memory is asked for.
const LITTLE: usize = 64;

/// Gives memory back once three quarters of it are idle.
pub(crate) fn shrink<T>(list: &mut Vec<T>) {
    if list.len().max(LITTLE) < list.capacity() / 4 {
        list.shrink_to(list.len() * 2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_thing_and_no_other() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert("a"), slots.insert("b"));
        let thing = |slots: &Slots<&'static str>, key| slots.get(key).copied();
        assert_eq!(slots.remove(a), Some("a"));
        assert!(slots.remove(a).is_none());
        let c = slots.insert("c");
        assert_eq!((c.index(), thing(&slots, a), thing(&slots, c)), (a.index(), None, Some("c")));
        assert_eq!((thing(&slots, b), slots.len()), (Some("b"), 2));
        assert_eq!(slots.drain().collect::<Vec<_>>(), ["c", "b"]);
        assert_eq!((slots.len(), thing(&slots, b)), (0, None));
    }

    #[test]
    fn memory_shrinks_with_what_is_left() {
        let mut slots = Slots::default();
        let keys: Vec<Key> = (0..10_000).map(|number| slots.insert(number)).collect();
        for key in &keys[10..] {
            slots.remove(*key);
        }
        assert_eq!(slots.len(), 10);
        assert!(slots.all.capacity() <= 256, "{}", slots.all.capacity());
        for key in &keys[..10] {
            slots.remove(*key);
        }
        assert!(slots.all.is_empty() && slots.vacant.is_empty() && slots.is_empty());
    }

    #[test]
    fn the_lowest_slot_is_used_again_first() {
        let mut slots = Slots::default();
        let keys: Vec<Key> = (0..10).map(|number| slots.insert(number)).collect();
        for at in [7, 3, 8, 9] {
            slots.remove(keys[at]);
        }
        let again: Vec<usize> = (0..4).map(|number| slots.insert(number).index()).collect();
        assert_eq!(again, [3, 7, 8, 9]);
        assert_eq!((slots.len(), slots.all.len()), (10, 10));
    }
}
