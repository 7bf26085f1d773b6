use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use leasehold_core::Instant;

use crate::slots::{Key, Slots, shrink};

/// Things that fall due, each at its own instant, which may change.
///
/// Most things are taken out long before they are due. So a new one is put in order, in O(log n),
/// only with the next [`sort`](Self::sort).
#[derive(Debug)]
pub struct DueQueue<T> {
    things: Slots<Entry<T>>,
    order: BTreeSet<(Instant, Key)>,
    /// Things that are not in order yet.
    fresh: Vec<Key>,
    /// None of them falls due before.
    fresh_from: Instant,
    /// Until when the task sleeps that waits for what is due.
    sleeps_until: Instant,
}

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    /// `None` for a thing that is in order.
    fresh: Option<Place>,
    thing: T,
}

/// A place among the fresh things, one more than its index.
type Place = NonZeroU32;

const NEVER: Instant = Instant::at(Duration::MAX);

impl<T> Default for DueQueue<T> {
    fn default() -> Self {
        let (things, order, fresh) = (Slots::default(), BTreeSet::new(), Vec::new());
        Self { things, order, fresh, fresh_from: NEVER, sleeps_until: Instant::default() }
    }
}

impl<T> DueQueue<T> {
    /// Adds a thing that falls due at `at`.
    pub fn insert(&mut self, at: Instant, thing: T) -> Key {
        self.fresh_from = self.fresh_from.min(at);
        // More would not fit into memory.
        let fresh = u32::try_from(self.fresh.len() + 1).ok().and_then(Place::new);
        let key = self.things.insert(Entry { at, fresh, thing });
        self.fresh.push(key);
        key
    }

    /// Takes a thing out.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        let Entry { at, fresh, thing } = self.things.remove(key)?;
        match fresh {
            None => drop(self.order.remove(&(at, key))),
            Some(place) => self.forget_fresh(place),
        }
        Some(thing)
    }

    /// Moves a thing to another instant.
    pub fn reschedule(&mut self, key: Key, at: Instant) {
        let Some(one) = self.things.get_mut(key) else { return };
        let old = std::mem::replace(&mut one.at, at);
        if one.fresh.is_some() {
            self.fresh_from = self.fresh_from.min(at);
        } else if old != at {
            self.order.remove(&(old, key));
            self.order.insert((at, key));
        }
    }

    /// Puts the new things in order: [`due`](Self::due) and [`earliest`](Self::earliest) know them
    /// from then on.
    pub fn sort(&mut self) {
        for key in self.fresh.drain(..) {
            if let Some(one) = self.things.get_mut(key) {
                one.fresh = None;
                self.order.insert((one.at, key));
            }
        }
        shrink(&mut self.fresh);
        self.fresh_from = NEVER;
    }

    /// A thing by its key.
    pub fn get(&self, key: Key) -> Option<&T> {
        self.things.get(key).map(|one| &one.thing)
    }

    /// A thing by its key, to be changed.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.things.get_mut(key).map(|one| &mut one.thing)
    }

    /// When the things that fall due until `until` do so, and their keys, earliest first; without
    /// those that are not [in order](Self::sort).
    pub fn due(&self, until: Instant) -> impl Iterator<Item = (Instant, Key)> {
        self.order.range(..=(until, Key::LAST)).copied()
    }

    /// Before this no thing falls due; once they are all [in order](Self::sort), the first one
    /// then.
    pub fn earliest(&self) -> Option<Instant> {
        let first = self.order.first().map(|(at, _)| *at);
        let fresh = (!self.fresh.is_empty()).then_some(self.fresh_from);
        first.into_iter().chain(fresh).min()
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
    pub fn at(&self, key: Key) -> Option<Instant> {
        self.things.get(key).map(|one| one.at)
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
        self.things.iter().map(|one| &one.thing)
    }

    /// Takes everything out.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.order.clear();
        self.fresh.clear();
        self.things.drain().map(|one| one.thing)
    }

    /// The thing at a place among the fresh ones is gone; the last of them takes the place.
    fn forget_fresh(&mut self, place: Place) {
        self.fresh.swap_remove(place.get() as usize - 1);
        if let Some(moved) = self.fresh.get(place.get() as usize - 1)
            && let Some(one) = self.things.get_mut(*moved)
        {
            one.fresh = Some(place);
        }
        if self.fresh.is_empty() {
            self.fresh_from = NEVER;
        }
        shrink(&mut self.fresh);
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
        assert_eq!((queue.earliest(), queue.due(at(30)).count()), (Some(at(10)), 0));
        queue.sort();
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
    fn a_thing_that_goes_before_it_is_in_order_leaves_nothing() {
        let mut queue = DueQueue::default();
        let [a, b, c] = [30, 10, 20].map(|millis| queue.insert(at(millis), millis));
        assert_eq!(queue.remove(a), Some(30));
        queue.reschedule(b, at(40));
        assert_eq!((queue.at(b), queue.earliest()), (Some(at(40)), Some(at(10))));
        queue.sort();
        assert_eq!(queue.due(at(99)).collect::<Vec<_>>(), [(at(20), c), (at(40), b)]);
        let d = queue.insert(at(5), 5);
        assert_eq!((queue.earliest(), queue.remove(d)), (Some(at(5)), Some(5)));
        assert_eq!((queue.earliest(), queue.len()), (Some(at(20)), 2));
        queue.reschedule(c, at(50));
        assert_eq!((queue.remove(b), queue.earliest()), (Some(10), Some(at(50))));
        assert_eq!((queue.remove(c), queue.earliest(), queue.is_empty()), (Some(20), None, true));
    }
}
