use leasehold_core::{Fence, Instant, LockName, Mutex, NameMap};

use crate::{durations::GENERATION, queue::EndedTurn};

/// What this runtime remembers of each name in recent use: the largest token, and whether other
/// runtimes want the lock.
///
/// Every acquire sends the token along, which heals a counter that the server has lost. Two
/// generations bound the memory: a name without a grant for two of them, 20 minutes, is forgotten.
/// (The state of a held name knows the fence of its turn.) The server's counter lives for longer,
/// so a counter below a watermark has lost data.
#[derive(Debug, Default)]
pub(crate) struct Watermarks(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    recent: NameMap<NameHistory>,
    older: NameMap<NameHistory>,
    turned_at: Instant,
}

#[derive(Debug, Clone, Copy)]
struct NameHistory {
    last: Fence,
    /// How many leases in a row no other runtime wanted; it stops at `needed`.
    unwanted: u8,
    /// How many such leases make it worth keeping the lock idle; none before the first recall.
    needed: u8,
}

impl NameHistory {
    /// How many leases in a row nobody else may want after the first recall.
    const LEAST: u8 = 3;
    /// The limit of that number, which doubles with each further recall. So if two processes use the
    /// lock alternately and never wait for each other, less than one lease in a hundred costs a recall.
    const MOST: u8 = 192;
    /// A turn with so many leases shows that one process uses the lock.
    const MANY: u32 = 16;

    fn is_worth_keeping(self) -> bool {
        self.unwanted >= self.needed
    }

    /// Another runtime wanted the lock, after this one had `leases` of it.
    fn on_wanted(&mut self, leases: u32) {
        if leases >= Self::MANY {
            self.needed = Self::LEAST;
        } else if self.is_worth_keeping() {
            self.needed = self.needed.saturating_mul(2).clamp(Self::LEAST, Self::MOST);
        }
        self.unwanted = 0;
    }

    /// No other runtime wanted the lock while this one had `leases` of it.
    fn on_unwanted(&mut self, leases: u32) {
        if leases >= Self::MANY {
            self.needed = 0;
        }
        let leases = u8::try_from(leases).unwrap_or(u8::MAX);
        self.unwanted = self.unwanted.saturating_add(leases).min(self.needed);
    }
}

impl Watermarks {
    /// As many as fill a hash map that would double with one more.
    const MOST: usize = 28 * 1024;

    pub(crate) fn of(&self, now: Instant, name: &LockName) -> Option<Fence> {
        self.seen(now, name).map(|seen| seen.last)
    }

    fn seen(&self, now: Instant, name: &LockName) -> Option<NameHistory> {
        let mut generations = self.0.lock();
        generations.turn(now);
        generations.recent.get(name).or_else(|| generations.older.get(name)).copied()
    }

    /// Whether it is worth keeping a lock idle: most names are used once, or others want them.
    pub(crate) fn is_worth_keeping(&self, now: Instant, name: &LockName) -> bool {
        self.seen(now, name).is_some_and(NameHistory::is_worth_keeping)
    }

    /// A turn has ended, and the name lets its turns be kept.
    pub(super) fn on_kept_turn_end(&self, name: &LockName, ended: EndedTurn) {
        let EndedTurn { leases, was_wanted, .. } = ended;
        let mut generations = self.0.lock();
        let Generations { recent, older, .. } = &mut *generations;
        match recent.get_mut(name).or_else(|| older.get_mut(name)) {
            Some(history) if was_wanted => history.on_wanted(leases),
            Some(history) => history.on_unwanted(leases),
            None => {}
        }
    }

    pub(crate) fn len(&self) -> usize {
        let generations = self.0.lock();
        generations.recent.len() + generations.older.len()
    }

    pub(crate) fn saw(&self, now: Instant, name: &LockName, fence: Fence) {
        let mut generations = self.0.lock();
        generations.turn(now);
        if let Some(seen) = generations.recent.get_mut(name) {
            seen.last = fence.max(seen.last);
            return;
        }
        let new = NameHistory { last: fence, unwanted: 0, needed: 0 };
        let mut seen = generations.older.remove(name).unwrap_or(new);
        seen.last = fence.max(seen.last);
        generations.recent.insert(name.clone(), seen);
    }
}

impl Generations {
    fn turn(&mut self, now: Instant) {
        let age = now.saturating_since(self.turned_at);
        if age >= 2 * GENERATION {
            // The last use is so long ago that both generations are old.
            self.recent.clear();
        }
        if self.recent.len() >= Watermarks::MOST || age >= GENERATION {
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
        let token = |value: u64| Fence::try_from(value).unwrap();
        marks.saw(Instant::default(), &name(1), token(7));
        marks.saw(Instant::default(), &name(1), token(5));
        assert_eq!(marks.of(Instant::default(), &name(1)), Some(token(7)));
        assert_eq!(marks.of(Instant::default(), &name(2)), None);
    }

    #[test]
    fn a_name_is_worth_keeping_from_its_second_use_on() {
        let (marks, at) = (Watermarks::default(), Instant::default());
        assert!(!marks.is_worth_keeping(at, &name(1)));
        marks.saw(at, &name(1), Fence::try_from(7_u64).unwrap());
        assert!(marks.is_worth_keeping(at, &name(1)));
        assert!(!marks.is_worth_keeping(at, &name(2)));
    }

    /// A turn of so many leases is over.
    fn ended(marks: &Watermarks, was_wanted: bool, leases: u32) {
        let ended = EndedTurn { watch: None, leases, was_wanted, may_be_kept: true };
        marks.on_kept_turn_end(&name(1), ended);
    }

    /// How many leases that nobody wants it takes until a name is worth keeping.
    fn leases_until_kept(marks: &Watermarks) -> u32 {
        let worth = |marks: &Watermarks| marks.is_worth_keeping(Instant::default(), &name(1));
        let mut leases = 0;
        while !worth(marks) {
            ended(marks, false, 1);
            leases += 1;
        }
        leases
    }

    #[test]
    fn each_recall_doubles_how_many_leases_nobody_may_want_up_to_a_limit() {
        let marks = Watermarks::default();
        marks.saw(Instant::default(), &name(1), Fence::try_from(7_u64).unwrap());
        for needed in [3, 6, 12, 24, 48, 96, 192, 192] {
            ended(&marks, true, 1);
            assert_eq!(leases_until_kept(&marks), needed);
        }
        ended(&marks, true, 1);
        ended(&marks, false, 2);
        ended(&marks, true, 1);
        assert_eq!(leases_until_kept(&marks), 192, "it was not kept in between");
    }

    #[test]
    fn a_turn_with_many_leases_makes_a_name_worth_keeping_soon() {
        let marks = Watermarks::default();
        marks.saw(Instant::default(), &name(1), Fence::try_from(7_u64).unwrap());
        for _ in 0..8 {
            ended(&marks, true, 1);
            let _ = leases_until_kept(&marks);
        }
        ended(&marks, true, 16);
        assert_eq!(leases_until_kept(&marks), 3, "a turn that was recalled after many leases");
        ended(&marks, true, 1);
        assert_eq!(leases_until_kept(&marks), 6);
        ended(&marks, false, 16);
        ended(&marks, true, 1);
        assert_eq!(leases_until_kept(&marks), 3);
    }

    #[test]
    fn memory_is_bounded_and_idle_names_go() {
        let marks = Watermarks::default();
        let token = Fence::try_from(1_u64).unwrap();
        for i in 0..3 * Watermarks::MOST {
            marks.saw(Instant::default(), &name(i), token);
        }
        assert!(marks.len() <= 2 * Watermarks::MOST);
        let later = Instant::default() + GENERATION;
        assert_eq!(marks.of(later, &name(0)), None);
        assert_eq!(marks.of(later + GENERATION, &name(0)), None);
        assert_eq!(marks.len(), 0);
    }
}
