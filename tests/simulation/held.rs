use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use leasehold::{Guard, Lease, LeaseState, LockName, LossReason, store::Inspection, time::Clock};
use leasehold_testkit::Event;

use super::{
    plan::millis,
    worker::{Worker, poll_without_waker},
};

/// A hold of a lease in a worker's hands.
pub(crate) struct Held<'a> {
    worker: &'a Worker,
    name: &'a LockName,
    guard: Guard,
    lease: Lease,
    /// Whether all holds of the lease are in the hands of one asker.
    alone: bool,
}

impl<'a> Held<'a> {
    pub(crate) fn new(worker: &'a Worker, name: &'a LockName, guard: Guard) -> Self {
        let lease = guard.lease();
        Self { worker, name, guard, lease, alone: true }
    }

    /// The same hold of a lease that others may hold too.
    pub(crate) fn shared(self) -> Self {
        self.worker.share(self.name, &self.lease);
        Self { alone: false, ..self }
    }

    /// Tells the history what is believed at present, and whether anything is.
    pub(crate) fn look(&self) -> bool {
        look(self.worker, self.name, &self.lease)
    }

    /// Holds the lock for a while, uses the storage, and gives it back in some way.
    pub(crate) async fn hold(self) {
        let (worker, habits) = (self.worker, self.worker.habit());
        if worker.dice.chance(habits.writes) {
            self.increment(true).await;
        }
        // What was lost before the quiet came is not sent again: the lease is believed in anyway.
        let is_counted = worker.scene.is_quiet();
        let inner = if worker.dice.chance(habits.reenters) { self.reenter().await } else { None };
        self.pass(worker.dice.spread(Duration::from_nanos(1), habits.longest_hold)).await;
        if let Some(inner) = inner {
            if is_counted {
                self.compare_holds(2);
            }
            inner.linger().await;
        }
        if worker.dice.chance(habits.writes) {
            self.increment(worker.dice.below(4) > 0).await;
        }
        self.give_back(true).await;
    }

    /// Holds for a moment, and gives back one hold of a lease that has others.
    pub(crate) async fn linger(self) {
        self.pass(self.worker.dice.spread(Duration::from_nanos(1), millis(10))).await;
        self.give_back(false).await;
    }

    async fn reenter(&self) -> Option<Self> {
        let guard = self.guard.reenter().await.ok()?;
        if guard.fence() != self.guard.fence() || guard.id() != self.guard.id() {
            self.complain("a re-entry is another lease");
        }
        self.look();
        Some(Self { alone: self.alone, ..Self::new(self.worker, self.name, guard) })
    }

    /// Lets time pass, and looks at the lease meanwhile; returns early when it is lost.
    async fn pass(&self, time: Duration) {
        let local = &self.worker.place.local;
        let end = local.now() + time;
        loop {
            let now = local.now();
            if !self.look() || now >= end {
                return;
            }
            let step = end.saturating_since(now).min(millis(30));
            tokio::select! {
                biased;
                _ = self.guard.lost() => {
                    if self.lease.is_held() {
                        self.complain("lost() resolved, and the lease is held");
                    }
                }
                () = self.worker.sleep(step) => {}
            }
        }
    }

    /// Reads the counter, takes a while, and sends the increased value, which takes a while too.
    async fn increment(&self, waits: bool) {
        let (worker, stamp) = (self.worker, self.guard.stamp());
        if !self.look() {
            return;
        }
        let storages = &worker.scene.storages;
        let Some(value) = storages.read(self.name, stamp, worker.now()) else { return };
        self.pass(worker.dice.spread(Duration::from_micros(1), millis(20))).await;
        if !self.look() {
            return;
        }
        let written = Arc::new(AtomicBool::new(false));
        let (storages, name, done) = (storages.clone(), self.name.clone(), Arc::clone(&written));
        let after = worker.dice.spread(Duration::from_micros(10), millis(50));
        worker.scene.post.send(after, move |at| {
            storages.write(&name, stamp, at, value + 1);
            done.store(true, Ordering::Relaxed);
        });
        // Who does not wait does nothing more: the write may arrive after the release.
        while waits && !written.load(Ordering::Relaxed) {
            worker.sleep(after.max(millis(1))).await;
        }
        self.look();
    }

    /// The server counts the holds that there are, if they were taken in quiet times.
    fn compare_holds(&self, holds: u32) {
        let scene = &self.worker.scene;
        if !self.alone || !self.lease.is_held() {
            return;
        }
        if let Inspection::Held(record) = scene.peek.inspect(self.name)
            && record.id.runtime() == self.lease.id().runtime()
            && record.holds != holds
        {
            self.complain(&format!("the server counts {} holds of {holds}", record.holds));
        }
    }

    /// Gives the hold back: awaited, dropped, or dropped while it is being given back.
    async fn give_back(self, last: bool) {
        self.look();
        let Self { worker, name, guard, lease, alone } = self;
        let (over, habits, at) = (guard.lost(), worker.habit(), worker.now());
        let was_held = lease.is_held();
        let rest = if worker.dice.chance(habits.drops) {
            drop(guard);
            None
        } else {
            let mut release = Box::pin(guard.release());
            let answer = poll_fn(|cx| Poll::Ready(release.as_mut().poll(cx))).await;
            answer.is_pending().then_some(release)
        };
        // From the first poll on it is over in memory.
        if was_held && !lease.is_held() {
            worker.tell(name, Event::Released { lease: lease.id(), at });
        }
        if last && alone && lease.is_held() {
            worker.scene.complain(format!("{} is held after its release", lease.id()));
        } else if !lease.is_held() && poll_without_waker(pin!(over)).is_pending() {
            worker.scene.complain(format!("{} is over, and its lost() is not", lease.id()));
        }
        let Some(mut release) = rest else { return };
        if worker.dice.chance(habits.half_releases) {
            let time = worker.dice.spread(Duration::from_micros(1), millis(2));
            tokio::select! {
                biased;
                answer = release.as_mut() => drop(answer),
                () = worker.sleep(time) => {}
            }
        } else {
            drop(release.await);
        }
    }

    fn complain(&self, what: &str) {
        let (process, id) = (self.worker.place.process, self.guard.id());
        let at = self.worker.now();
        self.worker.scene.complain(format!("at {at:?} process {process}, lease {id}: {what}"));
    }
}

fn look(worker: &Worker, name: &LockName, lease: &Lease) -> bool {
    let id = lease.id();
    match lease.state() {
        LeaseState::Held { until } => {
            let until = worker.place.drift.world(until);
            worker.tell(name, Event::BelievedUntil { lease: id, until });
            true
        }
        LeaseState::Lost(reason) => {
            let at = worker.now();
            if matches!(reason, LossReason::Gone | LossReason::ForceReleased | LossReason::DataLost)
            {
                worker.tell(name, Event::ToldGone { lease: id, at });
            }
            worker.tell(name, Event::Lost { lease: id, at });
            false
        }
        LeaseState::Released => false,
    }
}
