use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use leasehold::{HeardEnd, ListedLock, LockName};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{changes::Changes, looks::Look};

/// What the view shows, and how.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) look: Option<Look>,
    pub(super) changes: Changes,
    pub(super) sort: Sort,
    pub(super) filter: String,
    pub(super) mode: Mode,
    pub(super) is_paused: bool,
    /// Whether possible cycles are shown: in a healthy service they come and go.
    pub(super) shows_cycles: bool,
    /// The result of the last action, for people.
    pub(super) message: String,
    selected: Option<LockName>,
    /// When each lease ends, and since when this view has seen that end.
    heard: BTreeMap<LockName, HeardEnd>,
}

/// The order of the locks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    MostWanted,
    LongestWait,
    LongestHold,
    Name,
}

/// How a key is taken.
#[derive(Debug, Default)]
pub(super) enum Mode {
    #[default]
    Browse,
    /// They write the filter.
    Filter,
    /// They answer whether to end this lease.
    Ask(Box<ListedLock>),
}

/// What the program has to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    Nothing,
    Quit,
    Pause(bool),
    ForceRelease(Box<ListedLock>),
}

impl Sort {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::MostWanted => "most wanted",
            Self::LongestWait => "longest wait",
            Self::LongestHold => "longest hold",
            Self::Name => "name",
        }
    }
}

/// The longest wait for a lock.
pub(super) fn longest_wait(lock: &ListedLock) -> Duration {
    lock.lease.waiters.iter().map(|waiter| waiter.waiting_for).max().unwrap_or_default()
}

impl Model {
    /// Takes a new look in.
    pub(super) fn on_look(&mut self, look: Look) {
        if let Some(last) = &self.look {
            let between = look.at.saturating_since(last.at);
            self.changes = Changes::of(&last.locks, &look.locks, between);
        }
        let ends = look.locks.iter().map(|lock| {
            let (before, left) = (self.heard.get(&lock.name), lock.lease.remaining);
            let new = HeardEnd::new(look.at, left);
            (lock.name.clone(), before.map_or(new, |before| before.hear(look.at, left)))
        });
        self.heard = ends.collect();
        self.look = Some(look);
    }

    /// Whether the holder has not renewed its lease for two thirds of its time.
    pub(super) fn looks_dead(&self, lock: &ListedLock) -> bool {
        let Some(last) = &self.look else { return false };
        let heard = self.heard.get(&lock.name).filter(|_| !lock.lease.kept && !lock.lease.idle);
        heard.is_some_and(|heard| heard.unrenewed_for(last.at).is_some())
    }

    /// The locks that fit the filter, in order.
    pub(super) fn locks(&self) -> Vec<&ListedLock> {
        let fits = |lock: &&ListedLock| {
            lock.name.as_str().contains(&self.filter) || lock.lease.label.contains(&self.filter)
        };
        let all = self.look.iter().flat_map(|look| &look.locks);
        let mut locks: Vec<_> = all.filter(fits).collect();
        locks.sort_by(|a, b| a.name.cmp(&b.name));
        match self.sort {
            Sort::MostWanted => {
                locks.sort_by_key(|lock| Reverse((lock.lease.waiters.len(), longest_wait(lock))));
            }
            Sort::LongestWait => locks.sort_by_key(|lock| Reverse(longest_wait(lock))),
            Sort::LongestHold => locks.sort_by_key(|lock| Reverse(lock.lease.held_for)),
            Sort::Name => {}
        }
        locks
    }

    /// Which of the locks is selected: the first one, unless another was.
    pub(super) fn selected(&self, locks: &[&ListedLock]) -> usize {
        let is_selected = |lock: &&ListedLock| Some(&lock.name) == self.selected.as_ref();
        locks.iter().position(is_selected).unwrap_or(0)
    }

    /// What a key does.
    pub(super) fn on_key(&mut self, KeyEvent { code, modifiers, .. }: KeyEvent) -> Action {
        if code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL) {
            return Action::Quit;
        }
        match std::mem::take(&mut self.mode) {
            Mode::Browse => self.on_key_of_look(code),
            Mode::Filter => {
                self.on_key_of_filter(code);
                Action::Nothing
            }
            Mode::Ask(lock) if code == KeyCode::Char('y') => Action::ForceRelease(lock),
            Mode::Ask(_) => {
                self.message = "nothing was changed".into();
                Action::Nothing
            }
        }
    }

    fn on_key_of_look(&mut self, key: KeyCode) -> Action {
        self.message.clear();
        match key {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('w') => self.sort = Sort::MostWanted,
            KeyCode::Char('l') => self.sort = Sort::LongestWait,
            KeyCode::Char('h') => self.sort = Sort::LongestHold,
            KeyCode::Char('n') => self.sort = Sort::Name,
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Char(' ') => {
                self.is_paused = !self.is_paused;
                return Action::Pause(self.is_paused);
            }
            KeyCode::Char('c') => self.shows_cycles = !self.shows_cycles,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::Char('r') => {
                let locks = self.locks();
                if let Some(lock) = locks.get(self.selected(&locks)) {
                    self.mode = Mode::Ask(Box::new(ListedLock::clone(lock)));
                }
            }
            _ => {}
        }
        Action::Nothing
    }

    fn on_key_of_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => return,
            KeyCode::Esc => return self.filter.clear(),
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(one) => self.filter.push(one),
            _ => {}
        }
        self.mode = Mode::Filter;
    }

    fn select(&mut self, by: isize) {
        let locks = self.locks();
        let at = self.selected(&locks).saturating_add_signed(by).min(locks.len().saturating_sub(1));
        self.selected = locks.get(at).map(|lock| lock.name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::tests::{at, lock, look};

    fn model(locks: Vec<ListedLock>) -> Model {
        let mut model = Model::default();
        model.on_look(look(locks, at(0)));
        model
    }

    fn names(model: &Model) -> Vec<&str> {
        model.locks().iter().map(|lock| lock.name.as_str()).collect()
    }

    fn type_keys(model: &mut Model, keys: &str) -> Action {
        keys.chars().map(|key| model.on_key(KeyCode::Char(key).into())).last().unwrap()
    }

    /// By name, seconds held, and the seconds of the waits.
    fn some() -> Model {
        model(vec![lock("b", 1, &[9]), lock("a", 2, &[]), lock("c", 3, &[1, 2])])
    }

    #[test]
    fn locks_are_sorted_by_a_key() {
        let mut model = some();
        assert_eq!(names(&model), ["c", "b", "a"]);
        for (key, order) in [
            ("l", ["b", "c", "a"]),
            ("h", ["c", "a", "b"]),
            ("n", ["a", "b", "c"]),
            ("w", ["c", "b", "a"]),
        ] {
            type_keys(&mut model, key);
            assert_eq!(names(&model), order, "{key}");
        }
    }

    #[test]
    fn a_filter_is_written_and_given_up() {
        let mut model = some();
        type_keys(&mut model, "/qb");
        assert_eq!(model.filter, "qb");
        model.on_key(KeyCode::Backspace.into());
        model.on_key(KeyCode::Backspace.into());
        type_keys(&mut model, "c");
        model.on_key(KeyCode::Enter.into());
        assert_eq!(names(&model), ["c"]);
        model.on_key(KeyCode::Esc.into());
        assert_eq!(names(&model).len(), 3);
    }

    #[test]
    fn the_selected_lock_stays_selected_when_the_order_changes() {
        let mut model = some();
        model.on_key(KeyCode::Down.into());
        type_keys(&mut model, "n");
        let locks = model.locks();
        assert_eq!(locks[model.selected(&locks)].name.as_str(), "b");
    }

    #[test]
    fn a_lease_is_ended_only_after_a_yes() {
        let mut model = some();
        assert_eq!(type_keys(&mut model, "rn"), Action::Nothing);
        assert_eq!(model.message, "nothing was changed");
        let Action::ForceRelease(lock) = type_keys(&mut model, "ry") else { panic!("{model:?}") };
        assert_eq!(lock.name.as_str(), "c");
    }

    #[test]
    fn a_lease_that_is_not_renewed_looks_dead_in_its_last_third() {
        let mut model = Model::default();
        let mut looks_dead = |second: u64, left: u64, kept: bool| {
            let mut lock = lock("a", second, &[]);
            (lock.lease.remaining, lock.lease.kept) = (Duration::from_secs(left), kept);
            model.on_look(look(vec![lock], at(second)));
            model.looks_dead(model.locks()[0])
        };
        assert!(!looks_dead(0, 30, false));
        assert!(!looks_dead(19, 11, false));
        assert!(looks_dead(20, 10, false));
        assert!(!looks_dead(21, 9, true), "it is kept closed");
        assert!(!looks_dead(22, 30, false), "it was renewed");
    }

    #[test]
    fn an_idle_lock_is_not_renewed_and_does_not_look_dead() {
        let mut model = Model::default();
        for (second, left) in [(0, 30), (20, 10), (25, 5)] {
            let mut lock = lock("a", second, &[]);
            (lock.lease.remaining, lock.lease.idle) = (Duration::from_secs(left), true);
            model.on_look(look(vec![lock], at(second)));
            assert!(!model.looks_dead(model.locks()[0]));
        }
    }

    #[test]
    fn keys_pause_and_quit() {
        let mut model = some();
        assert_eq!(type_keys(&mut model, " "), Action::Pause(true));
        assert_eq!(type_keys(&mut model, " "), Action::Pause(false));
        assert_eq!(type_keys(&mut model, "q"), Action::Quit);
        type_keys(&mut model, "/");
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(model.on_key(interrupt), Action::Quit);
    }
}
