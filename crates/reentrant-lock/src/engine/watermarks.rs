use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use leasehold_core::{FenceToken, Instant, LockName, NameMap, store::Granted};

use super::core::Engine;

/// The largest token this runtime has seen of each name, for names in recent use.
///
/// Sent along with every acquire, it heals a counter that the server has lost. Two generations
/// bound the memory: a name that is not used for two of them, 20 minutes, is forgotten for certain,
/// long before the server's counter may expire: a counter behind a watermark has lost data.
#[derive(Debug, Default)]
pub(crate) struct Watermarks(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    recent: NameMap<FenceToken>,
    older: NameMap<FenceToken>,
    turned_at: Instant,
}

impl Watermarks {
    /// As many as fill a hash map that would double with one more.
    const MOST: usize = 28 * 1024;
    const GENERATION: Duration = Duration::from_secs(600);

    /// The largest token seen of a name.
    pub(crate) fn of(&self, now: Instant, name: &LockName) -> Option<FenceToken> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        generations.turn(now);
        generations.recent.get(name).or_else(|| generations.older.get(name)).copied()
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
            *seen = fence.max(*seen);
            return;
        }
        let seen = generations.older.remove(name).map_or(fence, |older| older.max(fence));
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
