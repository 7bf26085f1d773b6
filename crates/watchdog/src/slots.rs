use slab::Slab;

/// The key of a thing in [`Slots`], never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    serial: u64,
    slot: usize,
}

/// Things by keys that are never used again, unlike those of the [`Slab`] that holds them.
#[derive(Debug)]
pub struct Slots<T> {
    all: Slab<(u64, T)>,
    serial: u64,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { all: Slab::new(), serial: 0 }
    }
}

impl<T> Slots<T> {
    /// Adds a thing.
    pub fn insert(&mut self, thing: T) -> Key {
        self.serial += 1;
        Key { serial: self.serial, slot: self.all.insert((self.serial, thing)) }
    }

    /// A thing by its key.
    pub fn get(&self, key: Key) -> Option<&T> {
        let (serial, thing) = self.all.get(key.slot)?;
        (*serial == key.serial).then_some(thing)
    }

    /// A thing by its key, to be changed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (serial, thing) = self.all.get_mut(key.slot)?;
        (*serial == key.serial).then_some(thing)
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        Some(self.all.remove(key.slot).1)
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every thing, in the order of the slots.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|(_, (_, thing))| thing)
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        std::mem::take(&mut self.all).into_iter().map(|(_, (_, thing))| thing)
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
        assert_eq!((c.slot, thing(&slots, a), thing(&slots, c)), (a.slot, None, Some("c")));
        assert_eq!((thing(&slots, b), slots.len()), (Some("b"), 2));
        assert_eq!(slots.drain().collect::<Vec<_>>(), ["c", "b"]);
        assert_eq!((slots.len(), thing(&slots, b)), (0, None));
    }
}
