use std::sync::{Mutex, MutexGuard, PoisonError};

use leasehold_core::{Instant, LockName};
use leasehold_watchdog::{DueQueue, Key};
use tokio::sync::Notify;

/// When to look at which name.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    state: Mutex<State>,
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    names: DueQueue<LockName>,
    sleeps_until: Instant,
    stopped: bool,
}

/// An entry of the agenda: its key, and when it is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scheduled {
    key: Key,
    at: Instant,
}

impl Scheduled {
    /// Whether this is the entry of a key.
    pub(super) fn is(self, key: Key) -> bool {
        self.key == key
    }
}

impl Agenda {
    /// Makes sure that a name is looked at at `at` at the latest.
    pub(super) fn set(&self, present: &mut Option<Scheduled>, at: Instant, name: &LockName) {
        if present.is_some_and(|present| present.at <= at) {
            return;
        }
        let mut state = self.state();
        if let Some(Scheduled { key, .. }) = *present {
            state.names.reschedule(key, at);
            *present = Some(Scheduled { key, at });
        } else {
            *present = Some(Scheduled { key: state.names.insert(at, name.clone()), at });
        }
        if at < state.sleeps_until {
            self.changed.notify_one();
        }
    }

    /// No look at a name is needed.
    pub(super) fn cancel(&self, present: Option<Scheduled>) {
        if let Some(Scheduled { key, .. }) = present {
            let removed = self.state().names.remove(key);
            drop(removed);
        }
    }

    /// The names that are due until `until`, if one is due at `now`; `None` when it is over.
    pub(super) fn take_due(&self, now: Instant, until: Instant) -> Option<Vec<(Key, LockName)>> {
        let mut state = self.state();
        if state.stopped {
            return None;
        }
        if state.names.earliest().is_none_or(|at| at > now) {
            return Some(Vec::new());
        }
        let keys: Vec<Key> = state.names.due(until).map(|(_, key)| key).collect();
        let take = |key| state.names.remove(key).map(|name| (key, name));
        Some(keys.into_iter().filter_map(take).collect())
    }

    /// When the driver is to look again, at `latest` in any case.
    pub(super) fn sleep_until(&self, latest: Instant) -> Instant {
        let mut state = self.state();
        let until = state.names.earliest().map_or(latest, |at| at.min(latest));
        state.sleeps_until = until;
        until
    }

    /// Whether the driver is to end.
    pub(super) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Tells the driver to end.
    pub(super) fn stop(&self) {
        self.state().stopped = true;
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
