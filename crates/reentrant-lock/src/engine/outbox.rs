use std::{collections::BTreeSet, mem, pin::pin, sync::Arc};

use leasehold_core::{Clock, Instant, LockName, Mutex};
use slotmap::{SlotMap, new_key_type};
use tokio::{
    select,
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
};

use super::delivery::{Delivery, DeliveryEnd};

new_key_type! {
    /// The key of a command that is pending.
    pub(super) struct DeliveryKey;
}

/// The commands that the server has not confirmed: a shutdown waits for them, and reports the rest.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<Unconfirmed>,
    changed: Notify,
    /// How many more commands may be pending, beside releases of turns and late withdrawals.
    room: Arc<Semaphore>,
    /// How many more late withdrawals may be pending.
    late_room: Arc<Semaphore>,
    /// Commands that no task waits for: only so many are sent at a time.
    pub(super) background: Arc<Semaphore>,
    /// Withdrawals whose ttl is over: one at a time is sent, or pauses.
    pub(super) late: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Unconfirmed {
    deliveries: SlotMap<DeliveryKey, PendingDelivery>,
    /// How many of them are releases.
    releases: usize,
    /// The locks of releases that failed, from a shutdown on.
    failed: Option<Vec<LockName>>,
    /// The locks of releases that were dropped, of which nothing is logged yet.
    abandoned: BTreeSet<LockName>,
}

#[derive(Debug)]
struct PendingDelivery {
    /// The lock, if this is its release.
    released: Option<LockName>,
    /// `None` for the release of a turn: there is one for each lock.
    permit: Option<OwnedSemaphorePermit>,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            changed: Notify::new(),
            room: Arc::new(Semaphore::new(Self::MAX)),
            late_room: Arc::new(Semaphore::new(Self::MAX_LATE)),
            background: Arc::new(Semaphore::new(Self::BACKGROUND)),
            late: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Outbox {
    const BACKGROUND: usize = 64;
    /// The most commands beside releases of turns and late withdrawals. What exceeds it ends by its ttl.
    const MAX: usize = 64 * 1024;
    /// The most late withdrawals. The oldest stay: later acquires of an outage mostly were not sent.
    const MAX_LATE: usize = 16 * 1024;

    /// Counts a command as pending; `None` when there are too many.
    pub(super) fn add(&self, delivery: &Delivery) -> Option<DeliveryKey> {
        let mut state = self.state.lock();
        let released = delivery.is_release().then(|| delivery.name.clone());
        let limit = delivery.turn.is_none().then(|| Arc::clone(&self.room));
        let Ok(permit) = limit.map(Semaphore::try_acquire_owned).transpose() else {
            state.failed(released);
            return None;
        };
        state.releases += usize::from(released.is_some());
        Some(state.deliveries.insert(PendingDelivery { released, permit }))
    }

    /// A withdrawal goes on after its ttl; `false` when too many do.
    pub(super) fn becomes_late(&self, key: DeliveryKey) -> bool {
        let Ok(permit) = Arc::clone(&self.late_room).try_acquire_owned() else { return false };
        if let Some(pending) = self.state.lock().deliveries.get_mut(key) {
            pending.permit = Some(permit);
        }
        true
    }

    /// A command is pending no more. With the last pending release, warns of all that were dropped.
    pub(super) fn done(&self, key: DeliveryKey, end: DeliveryEnd) {
        let abandoned = self.state.lock().done(key, end);
        self.changed.notify_waiters();
        // Last: a log that panics keeps nobody waiting.
        warn_of(&abandoned);
    }

    /// A release is dropped before its end: its tokio runtime stops. Its lock stays taken.
    pub(super) fn note_abandoned(&self, name: &LockName) {
        let abandoned = &mut self.state.lock().abandoned;
        if abandoned.len() < Self::MAX {
            abandoned.insert(name.clone());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().deliveries.len()
    }

    pub(super) fn remember_failures(&self) {
        self.state.lock().failed.get_or_insert_default();
    }

    /// Waits for every release until `deadline`, and for every other command until `soon`; yields
    /// the locks that stay taken.
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
                let awaited = if now < soon { state.deliveries.len() } else { state.releases };
                if now >= deadline || awaited == 0 {
                    let failed = state.failed.iter().flatten();
                    let locks: BTreeSet<_> =
                        state.being_released().chain(failed).cloned().collect();
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

    /// Leaves what is pending as it is, in a fork: to give a permit back may wait for a thread that is not there.
    pub(super) fn forget(&mut self) {
        mem::forget(mem::take(&mut self.state.get_mut().deliveries));
    }

    /// The locks of releases that are under way.
    pub(super) fn being_released(&self) -> BTreeSet<LockName> {
        self.state.lock().being_released().cloned().collect()
    }
}

impl Unconfirmed {
    fn being_released(&self) -> impl Iterator<Item = &LockName> {
        self.deliveries.values().filter_map(|pending| pending.released.as_ref())
    }

    /// Yields the locks of all releases that were dropped, with the last release.
    fn done(&mut self, key: DeliveryKey, end: DeliveryEnd) -> BTreeSet<LockName> {
        let Some(PendingDelivery { released, permit }) = self.deliveries.remove(key) else {
            return BTreeSet::new();
        };
        drop(permit);
        self.releases -= usize::from(released.is_some());
        if end == DeliveryEnd::Unconfirmed {
            self.failed(released);
        }
        if self.releases == 0 { mem::take(&mut self.abandoned) } else { BTreeSet::new() }
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

#[cfg(test)]
mod tests {
    use leasehold_core::{
        AcquisitionId, Class, Fence, Instant, LockName, Mode, RuntimeId, Ttl, metric::Metrics,
    };
    use uuid::Uuid;

    use super::{
        super::delivery::{Delivery, DeliveryKind},
        *,
    };

    fn delivery(number: usize, kind: DeliveryKind) -> Delivery {
        let name = LockName::new(format!("orders/{number}")).unwrap();
        let metrics = Metrics::default().class(&Class::default());
        let id = AcquisitionId::new(RuntimeId::new(Uuid::nil()), number as u64);
        let (now, ttl) = (Instant::default(), Ttl::default());
        Delivery::of(now, (&name, Mode::Write), &metrics, id, ttl, kind)
    }

    fn withdrawal(number: usize) -> Delivery {
        delivery(number, DeliveryKind::Withdraw)
    }

    /// Thousands of tasks have a release under way when their tokio runtime stops.
    #[test]
    fn the_last_release_tells_the_locks_of_all_that_were_dropped() {
        let (outbox, count) = (Outbox::default(), 5_000);
        let kind = DeliveryKind::Release(Fence::try_from(1u64).unwrap());
        let releases: Vec<_> = (0..count).map(|number| delivery(number, kind.clone())).collect();
        let keys: Vec<_> = releases.iter().map(|one| outbox.add(one).unwrap()).collect();
        let pending = outbox.add(&withdrawal(0)).unwrap();
        let end = |key, end| outbox.state.lock().done(key, end);
        let leave = |at: usize| {
            outbox.note_abandoned(&releases[at].name);
            end(keys[at], DeliveryEnd::Unconfirmed).len()
        };
        assert!((1..count).all(|at| leave(at) == 0), "the release of another lock is pending");
        assert_eq!((outbox.being_released().len(), outbox.len()), (1, 2));
        let told = end(keys[0], DeliveryEnd::Released);
        assert_eq!(told.len(), count - 1, "also if the last is confirmed");
        assert!(end(pending, DeliveryEnd::Gone).is_empty(), "they are told once");
    }

    #[test]
    fn late_withdrawals_have_a_limit_of_their_own() {
        let outbox = Outbox::default();
        let late: Vec<_> =
            (0..Outbox::MAX_LATE).map(|number| outbox.add(&withdrawal(number)).unwrap()).collect();
        assert!(late.iter().all(|key| outbox.becomes_late(*key)));
        let others: Vec<_> = (0..Outbox::MAX).map_while(|n| outbox.add(&withdrawal(n))).collect();
        assert_eq!(others.len(), Outbox::MAX, "those that are late do not count");
        assert!(outbox.add(&withdrawal(0)).is_none() && !outbox.becomes_late(others[0]));
        outbox.done(late[0], DeliveryEnd::Gone);
        assert!(outbox.becomes_late(others[0]) && outbox.add(&withdrawal(0)).is_some());
    }
}
