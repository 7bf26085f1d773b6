use std::{collections::BTreeMap, time::Duration};

use metrics::Key;

use super::record::set;
use crate::{clock::Instant, mutex::Mutex};

/// The two gauges of things that last: how many there are, and the age of the oldest.
// ADR 0015
pub struct Lasting {
    number: Key,
    age: Key,
    since: Mutex<Since>,
}

impl Lasting {
    pub(super) fn new(number: Key, age: Key) -> Self {
        Self { number, age, since: Mutex::default() }
    }

    /// One thing began at `since`.
    pub fn began(&self, since: Instant) {
        self.change(since, 1);
    }

    /// One thing that began at `since` ended.
    pub fn ended(&self, since: Instant) {
        self.change(since, -1);
    }

    fn change(&self, since: Instant, by: i32) {
        let number = self.since.lock().change(since, by);
        set(&self.number, f64::from(number));
    }

    pub(super) fn show(&self, now: Instant) {
        let (number, oldest) = {
            let since = self.since.lock();
            (since.number, since.oldest())
        };
        set(&self.number, f64::from(number));
        let age = oldest.map_or(Duration::ZERO, |oldest| now.saturating_since(oldest));
        set(&self.age, age.as_secs_f64());
    }
}

/// How many things are going on, and since when the oldest of them is.
///
/// Things that began within the same second are counted together, so the memory does not depend on
/// how many there are. An age is at most one second too great.
#[derive(Debug, Default)]
struct Since {
    number: i32,
    /// What began within each second: when the first of them did, and how many have not ended. That is below
    /// zero while an end is known before its beginning.
    seconds: BTreeMap<u64, (Instant, i32)>,
}

impl Since {
    /// Since when the oldest is going on, to the second.
    fn oldest(&self) -> Option<Instant> {
        self.seconds.values().find(|(_, number)| *number > 0).map(|(first, _)| *first)
    }

    /// `by` things that began at `since` are going on in addition; yields how many are.
    fn change(&mut self, since: Instant, by: i32) -> i32 {
        let at = since.since_origin().as_secs();
        let (first, number) = self.seconds.entry(at).or_insert((since, 0));
        *first = since.min(*first);
        *number += by;
        if *number == 0 {
            self.seconds.remove(&at);
        }
        self.number += by;
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    #[test]
    fn the_oldest_is_the_oldest_that_has_not_ended() {
        let mut since = Since::default();
        assert_eq!(since.oldest(), None);
        assert_eq!(since.change(at(7_300), 1), 1);
        assert_eq!(since.change(at(1_500), 1), 2);
        assert_eq!(since.oldest(), Some(at(1_500)));
        assert_eq!(since.change(at(1_500), -1), 1);
        assert_eq!((since.number, since.oldest()), (1, Some(at(7_300))));
        assert_eq!(since.change(at(7_300), -1), 0);
        assert_eq!((since.number, since.oldest()), (0, None));
    }

    #[test]
    fn an_age_is_at_most_one_second_too_great() {
        let mut since = Since::default();
        since.change(at(1_100), 1);
        since.change(at(1_900), 1);
        since.change(at(1_100), -1);
        assert_eq!(since.oldest(), Some(at(1_100)));
    }

    #[test]
    fn an_end_that_is_known_before_its_beginning_leaves_nothing() {
        let mut since = Since::default();
        assert_eq!(since.change(at(1_100), -1), -1);
        assert_eq!(since.oldest(), None);
        assert_eq!(since.change(at(1_100), 1), 0);
        assert!(since.oldest().is_none() && since.seconds.is_empty());
    }

    #[test]
    fn memory_depends_on_seconds_and_not_on_the_number() {
        let mut since = Since::default();
        for n in 0..100_000 {
            since.change(at(n / 10), 1);
        }
        assert_eq!((since.number, since.seconds.len()), (100_000, 10));
    }
}
