use std::{collections::BTreeSet, pin::pin, sync::Arc};

use leasehold_core::{Clock, Instant, LockName, Mutex};
use leasehold_watchdog::{Key, Slots};
use tokio::{
    select,
    sync::{Notify, Semaphore},
};

use super::{delivery::Delivery, repeat_rules::DeliveryEnd};

/// The commands that the server has not confirmed: a shutdown waits for them, and reports the rest.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<Unconfirmed>,
    changed: Notify,
    /// Commands that no task waits for: only so many are sent at a time.
    pub(super) background: Semaphore,
    /// Withdrawals whose ttl is over: one at a time is sent, or pauses.
    pub(super) late: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Unconfirmed {
    deliveries: Slots<PendingDelivery>,
    /// How many of them count against the limit.
    limited: usize,
    /// The locks of releases that failed, from a shutdown on.
    failed: Option<Vec<LockName>>,
    /// The locks of releases that were dropped, and are not told yet.
    left: BTreeSet<LockName>,
}

#[derive(Debug)]
struct PendingDelivery {
    /// The lock that stays closed until this is done.
    closed: Option<LockName>,
    is_limited: bool,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            background: Semaphore::new(Self::BACKGROUND),
            late: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Outbox {
    const BACKGROUND: usize = 64;
    /// The most commands beside releases of turns. What exceeds it ends by its ttl.
    const MAX: usize = 64 * 1024;

    /// Counts a command as pending; `None` when there are too many.
    pub(super) fn add(&self, delivery: &Delivery) -> Option<Key> {
        let mut state = self.state.lock();
        let closed = delivery.is_release().then(|| delivery.name.clone());
        let is_limited = delivery.turn.is_none();
        if is_limited && state.limited >= Self::MAX {
            state.failed(closed);
            return None;
        }
        state.limited += usize::from(is_limited);
        Some(state.deliveries.insert(PendingDelivery { closed, is_limited }))
    }

    pub(super) fn done(&self, key: Key, end: DeliveryEnd) {
        self.state.lock().done(key, end);
        self.changed.notify_waiters();
    }

    /// A release is dropped before its end: its tokio runtime stops. Yields the locks of all such
    /// releases with the last of them.
    pub(super) fn left(&self, key: Key, name: &LockName) -> BTreeSet<LockName> {
        let mut state = self.state.lock();
        if state.left.len() < Self::MAX {
            state.left.insert(name.clone());
        }
        state.done(key, DeliveryEnd::Unconfirmed);
        let has_more = state.closed().next().is_some();
        let left = if has_more { BTreeSet::new() } else { std::mem::take(&mut state.left) };
        drop(state);
        self.changed.notify_waiters();
        left
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().deliveries.len()
    }

    pub(super) fn remember_failures(&self) {
        self.state.lock().failed.get_or_insert_default();
    }

    /// Waits for every release until `deadline`, and for every other command until `soon`; yields
    /// the locks that stay closed.
    pub(super) async fn drain(
        &self,
        clock: &dyn Clock,
        soon: Instant,
        deadline: Instant,
    ) -> Vec<LockName> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registered before the look, so that no change is missed in between.
            changed.as_mut().enable();
            let now = clock.now();
            {
                let state = self.state.lock();
                // In the end only releases are awaited.
                let is_awaited = |one: &PendingDelivery| now < soon || one.closed.is_some();
                if now >= deadline || !state.deliveries.iter().any(is_awaited) {
                    let failed = state.failed.iter().flatten();
                    let locks: BTreeSet<_> = state.closed().chain(failed).cloned().collect();
                    return locks.into_iter().collect();
                }
            }
            let until = if now < soon { soon.min(deadline) } else { deadline };
            select! {
                biased;
                () = changed => {}
                () = clock.sleep_until(until) => {}
            }
        }
    }

    /// The locks of releases that are under way.
    pub(super) fn closed(&self) -> BTreeSet<LockName> {
        self.state.lock().closed().cloned().collect()
    }
}

impl Unconfirmed {
    fn closed(&self) -> impl Iterator<Item = &LockName> {
        self.deliveries.iter().filter_map(|pending| pending.closed.as_ref())
    }

    fn done(&mut self, key: Key, end: DeliveryEnd) {
        let Some(pending) = self.deliveries.remove(key) else { return };
        self.limited -= usize::from(pending.is_limited);
        if end == DeliveryEnd::Unconfirmed {
            self.failed(pending.closed);
        }
    }

    fn failed(&mut self, lock: Option<LockName>) {
        if let (Some(failed), Some(lock)) = (&mut self.failed, lock)
            && failed.len() < Outbox::MAX
        {
            failed.push(lock);
        }
    }
}

/// Warns of releases that nobody waits for any more, in one line.
pub(super) fn warn_of(locks: &BTreeSet<LockName>) {
    /// How many locks the line names.
    const NAMED: usize = 16;
    if locks.is_empty() {
        return;
    }
    let names: Vec<&str> = locks.iter().take(NAMED).map(LockName::as_str).collect();
    let more = locks.len().saturating_sub(NAMED);
    tracing::warn!(
        locks = ?names, more,
        "releases are not confirmed, and nobody waits for them any more: each lock may stay closed until \
         its ttl is over; call drain() before main returns"
    );
}
