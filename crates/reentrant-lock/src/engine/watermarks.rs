use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use leasehold_core::{FenceToken, Instant, LockName, NameMap, store::Granted};

use super::core::Engine;

/// What this runtime remembers of each name in recent use: the largest token, and whether other
/// runtimes want the lock.
///
/// The token, sent along with every acquire, it heals a counter that the server has lost. Two generations
/// bound the memory: a name that is not used for two of them, 20 minutes, is forgotten for certain,
/// long before the server's counter may expire: a counter behind a watermark has lost data.
#[derive(Debug, Default)]
pub(crate) struct Watermarks(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    recent: NameMap<Seen>,
    older: NameMap<Seen>,
    turned_at: Instant,
}

/// What is remembered of a name.
#[derive(Debug, Clone, Copy)]
struct Seen {
    last: FenceToken,
    /// How many leases in a row no other runtime wanted; it stops at [`Watermarks::IN_A_ROW`].
    unwanted: u8,
}

impl Watermarks {
    /// As many as fill a hash map that would double with one more.
    const MOST: usize = 28 * 1024;
    const GENERATION: Duration = Duration::from_secs(600);
    /// So many leases in a row that no other runtime wanted make it worth keeping a lock.
    const IN_A_ROW: u8 = 3;

    /// The largest token seen of a name.
    pub(crate) fn of(&self, now: Instant, name: &LockName) -> Option<FenceToken> {
        self.seen(now, name).map(|seen| seen.last)
    }

    fn seen(&self, now: Instant, name: &LockName) -> Option<Seen> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.turn(now);
        generations.recent.get(name).or_else(|| generations.older.get(name)).copied()
    }

    /// Whether it is worth keeping a lock idle: other runtimes did not want it of late.
    pub(super) fn is_worth_keeping(&self, now: Instant, name: &LockName) -> bool {
        self.seen(now, name).is_none_or(|seen| seen.unwanted >= Self::IN_A_ROW)
    }

    /// Another runtime wanted a lock.
    pub(super) fn on_wanted(&self, name: &LockName) {
        self.change(name, |_| 0);
    }

    /// No other runtime wanted a lock while this one had so many leases.
    pub(super) fn on_unwanted(&self, name: &LockName, leases: u32) {
        let leases = u8::try_from(leases).unwrap_or(u8::MAX);
        self.change(name, |before| before.saturating_add(leases).min(Self::IN_A_ROW));
    }

    fn change(&self, name: &LockName, change: impl FnOnce(u8) -> u8) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Generations { recent, older, .. } = &mut *generations;
        if let Some(seen) = recent.get_mut(name).or_else(|| older.get_mut(name)) {
            seen.unwanted = change(seen.unwanted);
        }
    }

    /// How many names are remembered.
    pub(crate) fn len(&self) -> usize {
        let generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.recent.len() + generations.older.len()
    }

    /// A token of a name was seen.
    pub(crate) fn saw(&self, now: Instant, name: &LockName, fence: FenceToken) {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.turn(now);
        if let Some(seen) = generations.recent.get_mut(name) {
            seen.last = fence.max(seen.last);
            return;
        }
        let new = Seen { last: fence, unwanted: Self::IN_A_ROW };
        let mut seen = generations.older.remove(name).unwrap_or(new);
        seen.last = fence.max(seen.last);
        generations.recent.insert(name.clone(), seen);
    }
}

impl Engine {
    /// Tokens of a name were granted at `at` or a little later, whether the grant counts or not.
    pub(crate) fn saw(&self, at: Instant, name: &LockName, granted: &Granted) {
        self.watermarks.saw(at, name, granted.last);
        if granted.regressed {
            self.metrics.store().regression();
            self.outages().regressed(self.clock.now(), name, granted.first);
        }
    }
}

impl Generations {
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_since(self.turned_at);
        if age >= 2 * Watermarks::GENERATION {
            // The last look is so long ago that both are old.
            self.recent.clear();
        }
        if self.recent.len() >= Watermarks::MOST || age >= Watermarks::GENERATION {
            self.older = std::mem::take(&mut self.recent);
            self.turned_at = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(i: usize) -> LockName {
        LockName::new(format!("n{i}")).unwrap()
    }

    #[test]
    fn the_largest_token_stays() {
        let marks = Watermarks::default();
        let token = |value: u64| FenceToken::try_from(value).unwrap();
        marks.saw(Instant::default(), &name(1), token(7));
        marks.saw(Instant::default(), &name(1), token(5));
        assert_eq!(marks.of(Instant::default(), &name(1)), Some(token(7)));
        assert_eq!(marks.of(Instant::default(), &name(2)), None);
    }

    #[test]
    fn a_name_that_was_wanted_is_worth_keeping_after_three_leases_that_were_not() {
        let (marks, at, name) = (Watermarks::default(), Instant::default(), name(1));
        assert!(marks.is_worth_keeping(at, &name), "nothing is known of it");
        marks.saw(at, &name, FenceToken::try_from(7_u64).unwrap());
        assert!(marks.is_worth_keeping(at, &name));
        marks.on_wanted(&name);
        for leases in [1, 0, 1] {
            assert!(!marks.is_worth_keeping(at, &name));
            marks.on_unwanted(&name, leases);
        }
        assert!(!marks.is_worth_keeping(at, &name));
        marks.on_unwanted(&name, 1);
        assert!(marks.is_worth_keeping(at, &name));
        marks.on_wanted(&name);
        marks.on_unwanted(&name, 1000);
        assert!(marks.is_worth_keeping(at, &name));
    }

    #[test]
    fn memory_is_bounded_and_idle_names_go() {
        let marks = Watermarks::default();
        let token = FenceToken::try_from(1_u64).unwrap();
        for i in 0..3 * Watermarks::MOST {
            marks.saw(Instant::default(), &name(i), token);
        }
        assert!(marks.len() <= 2 * Watermarks::MOST);
        let later = Instant::default() + Watermarks::GENERATION;
        assert_eq!(marks.of(later, &name(0)), None);
        assert_eq!(marks.of(later + Watermarks::GENERATION, &name(0)), None);
        assert_eq!(marks.len(), 0);
    }
}
