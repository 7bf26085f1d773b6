use std::{collections::BTreeMap, mem};

/// The key of a thing in [`Slots`], never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(u64);

/// Things by keys that are never used again, in the order in which they came. What is taken out leaves no room
/// behind.
// ADR 0048
#[derive(Debug)]
pub struct Slots<T> {
    all: BTreeMap<Key, T>,
    last: u64,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), last: 0 }
    }
}

impl<T> Slots<T> {
    /// Adds a thing.
    pub fn insert(&mut self, thing: T) -> Key {
        self.last += 1;
        self.all.insert(Key(self.last), thing);
        Key(self.last)
    }

    /// A thing by its key.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.all.get(&key)
    }

    /// A thing by its key, to be changed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.all.get_mut(&key)
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.all.remove(&key)
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every thing.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.values()
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        mem::take(&mut self.all).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_thing_and_no_other() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert("a"), slots.insert("b"));
        assert_eq!(slots.remove(a), Some("a"));
        assert!(slots.remove(a).is_none() && slots.get(a).is_none());
        let c = slots.insert("c");
        assert_eq!((slots.get(b), slots.get(c), slots.len()), (Some(&"b"), Some(&"c"), 2));
        assert_eq!(slots.drain().collect::<Vec<_>>(), ["b", "c"]);
        assert!(slots.is_empty() && slots.get(b).is_none() && slots.insert("d") > c);
    }
}
