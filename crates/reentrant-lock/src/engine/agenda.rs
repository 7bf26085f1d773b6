use leasehold_core::{Instant, LockName, Mutex};
use leasehold_watchdog::{DueQueue, Key};
use tokio::sync::Notify;

/// When to look at which name.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    state: Mutex<DueNames>,
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
struct DueNames {
    names: DueQueue<LockName>,
    stopped: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Scheduled {
    pub(super) key: Key,
    at: Instant,
}

impl Agenda {
    /// Makes sure that a name is looked at at `at` at the latest.
    pub(super) fn set(&self, present: &mut Option<Scheduled>, at: Instant, name: &LockName) {
        if present.is_some_and(|present| present.at <= at) {
            return;
        }
        let mut state = self.state.lock();
        if let Some(Scheduled { key, .. }) = *present {
            state.names.reschedule(key, at);
            *present = Some(Scheduled { key, at });
        } else {
            *present = Some(Scheduled { key: state.names.insert(at, name.clone()), at });
        }
        if state.names.must_wake_for(at) {
            self.changed.notify_one();
        }
    }

    pub(super) fn cancel(&self, present: Option<Scheduled>) {
        if let Some(Scheduled { key, .. }) = present {
            let removed = self.state.lock().names.remove(key);
            drop(removed);
        }
    }

    /// The names that are due until `until`; `None` when stopped.
    pub(super) fn take_due(&self, until: Instant) -> Option<Vec<(Key, LockName)>> {
        let mut state = self.state.lock();
        if state.stopped {
            return None;
        }
        if state.names.earliest().is_none_or(|at| at > until) {
            return Some(Vec::new());
        }
        state.names.sort();
        let keys: Vec<Key> = state.names.due(until).map(|(_, key)| key).collect();
        let take = |key| state.names.remove(key).map(|name| (key, name));
        Some(keys.into_iter().filter_map(take).collect())
    }

    pub(super) fn sleep_until(&self, now: Instant, latest: Instant) -> Instant {
        self.state.lock().names.sleep_until(now, latest)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_one();
    }
}
