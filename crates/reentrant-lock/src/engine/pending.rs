use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use leasehold_core::{
    AcquisitionId, Clock, Instant, LockName, Sleep, StoreError, Ttl,
    lease::{HoldUpdate, LeaseState, LossReason},
    metric::{ClassMetrics, HoldEnd, ReleaseVia},
};
use leasehold_watchdog::{HeldLease, ReleasedLease};
use tokio::{select, sync::Notify};

use crate::{
    cohort::{AfterLease, Effects, Env, TurnId, TurnRelease, unheard},
    release::{Belief, Outcome},
};

use super::{
    core::Engine,
    sending::{Command, Job, Sender, Sending},
    table::Member,
};

/// The commands that the server has not confirmed: a shutdown waits for them, and reports the rest.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    jobs: Mutex<Jobs>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Jobs {
    last: u64,
    pending: BTreeMap<u64, Entry>,
    /// How many of them count against the limit.
    limited: usize,
    /// The locks of releases that failed, from a shutdown on.
    failed: Option<Vec<LockName>>,
}

#[derive(Debug)]
struct Entry {
    /// The lock that stays closed until this is done.
    closed: Option<LockName>,
    is_limited: bool,
    failure: Option<StoreError>,
}

impl Pending {
    /// More than this are not taken, beside one for each turn: the ttl ends what they are about.
    const MAX: usize = 64 * 1024;

    /// Counts a job as pending; `None` when there are too many.
    pub(super) fn add(&self, closed: Option<LockName>, is_limited: bool) -> Option<u64> {
        let mut jobs = self.lock();
        if is_limited && jobs.limited >= Self::MAX {
            jobs.failed(closed);
            return None;
        }
        jobs.limited += usize::from(is_limited);
        jobs.last += 1;
        let number = jobs.last;
        jobs.pending.insert(number, Entry { closed, is_limited, failure: None });
        Some(number)
    }

    /// An attempt has failed, for a reason that the waiting task may ask for.
    pub(super) fn attempt_failed(&self, number: u64, error: &StoreError) {
        if let Some(entry) = self.lock().pending.get_mut(&number) {
            entry.failure = Some(error.clone());
        }
    }

    /// Why the last attempt failed, if one did.
    pub(super) fn failure(&self, number: u64) -> Option<StoreError> {
        self.lock().pending.get(&number)?.failure.clone()
    }

    /// A job is done, or given up.
    pub(super) fn done(&self, number: u64, outcome: Outcome) {
        let mut jobs = self.lock();
        let Some(entry) = jobs.pending.remove(&number) else { return };
        jobs.limited -= usize::from(entry.is_limited);
        if outcome == Outcome::Unconfirmed {
            jobs.failed(entry.closed);
        }
        drop(jobs);
        self.changed.notify_waiters();
    }

    /// How many jobs are not done.
    pub(crate) fn len(&self) -> usize {
        self.lock().pending.len()
    }

    /// From now on remembers the locks whose release failed.
    pub(crate) fn remember_failures(&self) {
        self.lock().failed.get_or_insert_default();
    }

    /// Waits until every job is done, until `deadline` at most; yields the locks that stay closed.
    pub(crate) async fn drain(&self, clock: &dyn Clock, deadline: Instant) -> Vec<LockName> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registered before the look, so that no change is missed in between.
            changed.as_mut().enable();
            if let Some(closed) = self.closed(clock.now() >= deadline) {
                return closed;
            }
            select! {
                biased;
                () = changed => {}
                () = clock.sleep_until(deadline) => {}
            }
        }
    }

    /// The locks that stay closed, once every job is done or the time is over.
    fn closed(&self, is_over: bool) -> Option<Vec<LockName>> {
        let jobs = self.lock();
        if !jobs.pending.is_empty() && !is_over {
            return None;
        }
        let pending = jobs.pending.values().filter_map(|entry| entry.closed.as_ref());
        let failed = jobs.failed.iter().flatten();
        let closed: BTreeSet<_> = pending.chain(failed).cloned().collect();
        Some(closed.into_iter().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Jobs {
    fn failed(&mut self, lock: Option<LockName>) {
        if let (Some(failed), Some(lock)) = (&mut self.failed, lock)
            && failed.len() < Pending::MAX
        {
            failed.push(lock);
        }
    }
}

/// A job in the hands of the task that waits for it; dropped before it is done, it goes on in the
/// runtime from where it stands.
///
/// Made before an await, it makes sure that a cancelled future leaves nothing undone. It counts as
/// pending from then on. Never drop it inside of a lock of the engine.
#[must_use = "dropped at once, it goes on in the runtime"]
pub(crate) struct Cleanup {
    engine: Arc<Engine>,
    number: u64,
    /// The lease whose turn ends with it, and whose holder waits for the answer.
    attended: Option<Arc<HeldLease>>,
    work: Option<Work>,
}

type Work = Pin<Box<dyn Future<Output = Result<Outcome, StoreError>> + Send>>;

impl Cleanup {
    /// Makes a job ready; `None` when too many are pending.
    pub(crate) fn armed(
        engine: &Arc<Engine>,
        job: Job,
        attended: Option<Arc<HeldLease>>,
    ) -> Option<Self> {
        let sending = Sending::new(engine, job)?;
        let number = sending.number;
        let (engine, work) = (Arc::clone(engine), Some(Box::pin(sending.run()) as Work));
        Some(Self { engine, number, attended, work })
    }

    /// Waits until the job is done, or its first attempt has failed if that `is_enough`, and until
    /// `until` at most; the job goes on in the runtime then. No timer is needed before the deadline of
    /// the first attempt, if `until` `is_its_deadline`.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the server has refused, or has not answered in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the job to the runtime.
    pub(crate) fn wait(
        mut self,
        until: Instant,
        mut is_its_deadline: bool,
        is_enough: bool,
    ) -> impl Confirmation {
        let mut timer = None::<Sleep>;
        poll_fn(move |cx| {
            let Some(work) = &mut self.work else { return Poll::Ready(Err(unheard())) };
            if let Poll::Ready(result) = work.as_mut().poll(cx) {
                self.work = None;
                return Poll::Ready(result);
            }
            let pending = &self.engine.pending;
            if is_enough && let Some(failure) = pending.failure(self.number) {
                return Poll::Ready(Err(failure));
            }
            // The first attempt has a deadline of its own: as a rule no timer is needed.
            if std::mem::take(&mut is_its_deadline) {
                return Poll::Pending;
            }
            let clock = &self.engine.clock;
            let timer = timer.get_or_insert_with(|| clock.sleep_until(until));
            if timer.as_mut().poll(cx).is_pending() && clock.now() < until {
                return Poll::Pending;
            }
            Poll::Ready(Err(pending.failure(self.number).unwrap_or_else(unheard)))
        })
    }
}

/// How a job ended.
pub(crate) trait Confirmation:
    Future<Output = Result<Outcome, StoreError>> + Send + Unpin
{
}
impl<F: Future<Output = Result<Outcome, StoreError>> + Send + Unpin> Confirmation for F {}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        if let Some(lease) = &self.attended {
            let turn = TurnId::of(lease.turn());
            self.engine.with(lease.name(), |member, _| {
                member.cohort.on_release_left(turn);
                ((), Effects::default())
            });
        }
        drop(self.engine.handle().spawn(work));
    }
}

impl Engine {
    /// A lease is released. Yields what the holder could believe until then, and who ends the turn on
    /// the server: that is pending before the lease shows as over. A lease whose turn the
    /// cohort has no more is lost, also before it is marked as lost.
    pub(crate) fn release(
        &self,
        lease: &Arc<HeldLease>,
        end: HoldEnd,
    ) -> (LeaseState, AfterLease<Option<Cleanup>>) {
        let released = self.with(lease.name(), |member, env| {
            if !member.cohort.has_lease(lease.fence()) {
                return (None, Effects::default());
            }
            let released = lease.release(env.now);
            let (after, mut effects) = self.leave_turn(member, env, lease, &released, end);
            effects.metrics = Some(Arc::clone(lease.metrics()));
            (Some((released, after)), effects)
        });
        let (released, after) = released.flatten().unwrap_or_else(|| {
            // Without effect if it is marked as lost already, for another reason.
            let _ = lease.lose(LossReason::Gone);
            (lease.release(self.clock.now()), AfterLease::WasOver)
        });
        let before = released.state();
        released.notify(end);
        (before, after)
    }

    /// The turn goes on without a lease that was released, if it was still on.
    fn leave_turn(
        &self,
        member: &mut Member,
        env: &Env<'_>,
        lease: &Arc<HeldLease>,
        released: &ReleasedLease,
        end: HoldEnd,
    ) -> (AfterLease<Option<Cleanup>>, Effects) {
        let (until, lease_until) = match released.state() {
            LeaseState::Held { until } => (released.belief(), until),
            LeaseState::Lost(reason) => {
                let (turn, closed_until) = (TurnId::of(lease.turn()), lease.closed_until());
                let effects = member.cohort.on_lost(env, turn, reason, closed_until);
                return (AfterLease::WasOver, effects);
            }
            LeaseState::Released => return (AfterLease::WasOver, Effects::default()),
        };
        let (watch, closed_until) = (member.cohort.watch(), lease.closed_until());
        let dropped = end == HoldEnd::Dropped;
        let (after, effects) =
            member.cohort.on_release(env, lease.fence(), until, closed_until, dropped);
        if let Some(watch) = watch {
            // Inside the lock: the next lease of the turn is watched after this one.
            self.watches.vacate(watch);
        }
        let after = match after {
            AfterLease::Settled => AfterLease::Settled,
            AfterLease::Dropped => AfterLease::Dropped,
            AfterLease::WasOver => AfterLease::WasOver,
            AfterLease::Ends(release) => {
                let unattended_at = env.now + self.timing.claim_window(lease.ttl());
                // That of the lease, which `max_hold` may end before its turn.
                let belief = Belief { until: lease_until, unattended_at };
                AfterLease::Ends(self.holders_release(lease, &release, belief))
            }
        };
        (after, effects)
    }

    /// The withdrawal of an acquisition.
    pub(super) fn withdrawal(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        id: AcquisitionId,
        ttl: Ttl,
    ) -> Job {
        let (via, expires) = (Some(ReleaseVia::Withdraw), self.clock.now() + ttl.get());
        let (name, metrics) = (name.clone(), Arc::clone(metrics));
        Job { name, id, ttl, command: Command::Withdraw, expires, via, metrics }
    }

    /// The release of a turn.
    pub(super) fn release_job(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        release: &TurnRelease,
        sender: Option<Sender>,
    ) -> Job {
        let TurnRelease { turn: TurnId { id, first: fence }, ttl, closed_until, via } = *release;
        let (name, metrics, expires) =
            (name.clone(), Arc::clone(metrics), self.clock.now() + ttl.get());
        let command = Command::Release { fence, closed_until, sender };
        Job { name, id, ttl, command, expires, via, metrics }
    }

    /// The release of a turn that its last holder ends, and waits for.
    pub(super) fn holders_release(
        &self,
        lease: &Arc<HeldLease>,
        release: &TurnRelease,
        belief: Belief,
    ) -> Option<Cleanup> {
        let release = TurnRelease { via: Some(ReleaseVia::Explicit), ..*release };
        let sender = Some(Sender::Holder(belief));
        let job = self.release_job(lease.name(), lease.metrics(), &release, sender);
        Cleanup::armed(&self.me.upgrade()?, job, Some(Arc::clone(lease)))
    }

    /// Ends a lease on the server whose turn is over here.
    pub(crate) fn release_lost(&self, lease: &HeldLease, via: ReleaseVia) {
        let (turn, ttl) = (TurnId::of(lease.turn()), lease.ttl());
        let release = TurnRelease { turn, ttl, closed_until: lease.closed_until(), via: Some(via) };
        let job = self.release_job(lease.name(), lease.metrics(), &release, None);
        drop(self.me.upgrade().and_then(|engine| Cleanup::armed(&engine, job, None)));
    }

    /// Tells the holds of a lease that goes on, for as long as the lease is believed: that extends it,
    /// and nothing may extend a lease that was lost.
    pub(crate) fn hold(
        self: &Arc<Self>,
        lease: &Arc<HeldLease>,
        update: HoldUpdate,
    ) -> Option<Cleanup> {
        let LeaseState::Held { until } = lease.state() else { return None };
        let job = Job {
            name: lease.name().clone(),
            id: lease.turn().id(),
            ttl: lease.ttl(),
            command: Command::Hold { lease: Arc::clone(lease), update },
            expires: until,
            via: None,
            metrics: Arc::clone(lease.metrics()),
        };
        Cleanup::armed(self, job, None)
    }
}

impl fmt::Debug for Cleanup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cleanup").field("number", &self.number).finish_non_exhaustive()
    }
}
