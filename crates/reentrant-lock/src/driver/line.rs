use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
    time::Duration,
};

use leasehold_core::{
    Instant, LockName, RuntimeLabel, StoreError, Ttl,
    lease::{LeaseState, LossReason},
    metric::{ClassMetrics, HoldEnd, WakeSource},
    store::AcquireAnswer,
};
use leasehold_watchdog::{HeldLease, ReleasedLease, Renewing, Share};

use crate::caller::Caller;
use crate::cohort::{
    AfterLease, Answer, Asked, Effects, End, Joined, Lead, Moment, Standing, Taken, Ticket,
};

use super::{
    cohorts::{Cohorts, Member},
    commands::nothing,
};

/// What a task wants of a lock.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) ttl: Ttl,
    pub(crate) tries: bool,
    pub(crate) renews: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) hold_at_least: Option<Duration>,
    /// Who wants it; known once the call is polled.
    pub(crate) caller: Option<Caller>,
    /// What others see as the holder; `None` for the runtime's label.
    pub(crate) label: Option<RuntimeLabel>,
    pub(crate) metrics: Arc<ClassMetrics>,
}

/// How a task came in.
#[derive(Debug)]
pub(crate) enum Entered {
    /// It is the first, and asks by itself.
    Leads(InLine, Lead),
    /// It waits.
    Waits(InLine),
    /// It does not want to wait, and the runtime is just giving the lock back.
    Settles,
    /// It did not want to wait.
    Taken,
    /// Nobody is let in any more.
    Closed,
}

/// The place of a task in its cohort; dropping it gives the place up.
#[derive(Debug)]
pub(crate) struct InLine {
    cohorts: Arc<Cohorts>,
    name: LockName,
    ticket: Ticket,
    /// Whether the place is given up already.
    left: AtomicBool,
}

/// What a task finds that waits.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its lease, and whether somebody else had the lock before.
    Lease(Arc<HeldLease>, bool),
    /// It was sent away, and may come in anew.
    Dropped,
    /// Its wait cannot come to anything.
    Failed(StoreError),
}

/// What the first task makes of the answer to its own command.
#[derive(Debug)]
pub(crate) enum Led {
    /// Its lease.
    Lease(Arc<HeldLease>),
    /// Somebody else has the lock, and it did not want to wait.
    Busy,
    /// It waits on.
    Waits,
    /// The store failed.
    Failed(StoreError),
}

/// What becomes of a turn whose lease was given back.
#[derive(Debug)]
pub(crate) enum GivenBack<T> {
    /// Another task has it, or the runtime ends it.
    Settled,
    /// The runtime ends it, and says what came of that.
    Driven,
    /// Whoever gave the lease back ends it on the server, as prepared.
    Ends(T),
    /// It had been over before.
    WasOver,
}

impl Cohorts {
    /// A task comes in, which is woken by `waker` when there is something for it.
    pub(crate) fn enter(self: &Arc<Self>, name: &LockName, wish: &Wish, waker: &Waker) -> Entered {
        self.listen();
        let in_line = |ticket| InLine {
            cohorts: Arc::clone(self),
            name: name.clone(),
            ticket,
            left: AtomicBool::new(false),
        };
        let joined = self.with_new(name, &wish.metrics, |member, m| {
            member.cohort.join(m, wish.ttl, wish.tries, waker)
        });
        match joined {
            Some(Joined::Leads(ticket, lead)) => Entered::Leads(in_line(ticket), lead),
            Some(Joined::Waits(ticket)) => Entered::Waits(in_line(ticket)),
            Some(Joined::Settles) => Entered::Settles,
            Some(Joined::Taken) => Entered::Taken,
            None => Entered::Closed,
        }
    }

    /// Whether a release that is on its way is over, or it is `until`; `waker` is woken by then.
    pub(crate) fn settled(&self, name: &LockName, until: Instant, waker: &Waker) -> Poll<bool> {
        let settled = self.with(name, |member, m| {
            let settled = member.cohort.settles(waker, until);
            let is_over = m.now >= until;
            (if settled || is_over { Poll::Ready(settled) } else { Poll::Pending }, nothing())
        });
        settled.unwrap_or(Poll::Ready(true))
    }

    /// A lease is given back; `prepare` makes ready for its end on the server, before anybody
    /// else can see that it is over. Yields what the holder could believe until then: a lease whose
    /// turn the cohort has no more is lost, also where nobody has told its holder yet.
    pub(crate) fn give_back<T>(
        &self,
        lease: &Arc<HeldLease>,
        end: HoldEnd,
        prepare: impl FnOnce(&End) -> T,
    ) -> (LeaseState, GivenBack<T>) {
        let given = self.with(lease.name(), |member, m| {
            if !member.cohort.has_lease(lease.fence()) {
                return (None, Effects::default());
            }
            let farewell = lease.release(m.now);
            let (back, mut effects) = leave_turn(self, member, m, lease, &farewell, end, prepare);
            effects.metrics = Some(Arc::clone(lease.metrics()));
            (Some((farewell, back)), effects)
        });
        let (farewell, back) = given.flatten().unwrap_or_else(|| {
            // Without effect where the holder was told before, and why.
            let _ = lease.lose(LossReason::Gone);
            (lease.release(self.shared.clock.now()), GivenBack::WasOver)
        });
        let before = farewell.state();
        farewell.tell(end);
        (before, back)
    }

    /// Makes a token in a task's hands a lease under watch. No await lies between: it cannot leak.
    /// Whoever called tells of it outside of the lock.
    fn lease(
        &self,
        member: &mut Member,
        m: &Moment<'_>,
        ticket: Ticket,
        taken: Taken,
        wish: &Wish,
    ) -> NewLease {
        let Taken { turn, token, until, watch, first, offered_at, source } = taken;
        let number = if first { turn.id().number() } else { ticket };
        let renewing = renewing(wish.renews, until.saturating_since(m.now), turn.ttl());
        let (max_hold, hold_at_least) = (wish.max_hold, wish.hold_at_least);
        let share = Share { turn, number, fence: token, until, renewing, max_hold, hold_at_least };
        let metrics = Arc::clone(&wish.metrics);
        member.holder = wish.caller;
        let (lease, watch) = self.shared.watches.take(watch, &share, m.now, metrics);
        if let Some(watch) = watch {
            member.cohort.watched(watch);
        }
        let woken = source.map(|source| (source, m.now.saturating_since(offered_at)));
        NewLease { lease, is_watched: watch.is_some(), woken }
    }
}

/// A lease that was taken inside of a lock, before anybody was told.
struct NewLease {
    lease: Arc<HeldLease>,
    is_watched: bool,
    woken: Option<(WakeSource, Duration)>,
}

impl NewLease {
    /// Whether somebody else had the lock before: a task of this runtime, or one that passed it on
    /// to this runtime. What a command was answered does not tell.
    fn was_taken(&self) -> bool {
        matches!(self.woken, Some((WakeSource::Local | WakeSource::Push, _)))
    }

    fn tell(self, metrics: &ClassMetrics) -> Arc<HeldLease> {
        let Self { lease, is_watched, woken } = self;
        lease.taken();
        if let Some((source, handover)) = woken {
            metrics.wakeup(source, handover);
        }
        if !is_watched {
            let _ = lease.lose(LossReason::WatchdogStopped);
        }
        lease
    }
}

/// The turn goes on without a lease that was given back, if it was still on.
fn leave_turn<T>(
    cohorts: &Cohorts,
    member: &mut Member,
    m: &Moment<'_>,
    lease: &HeldLease,
    farewell: &ReleasedLease,
    end: HoldEnd,
    prepare: impl FnOnce(&End) -> T,
) -> (GivenBack<T>, Effects) {
    let until = match farewell.state() {
        LeaseState::Held { .. } => farewell.belief(),
        LeaseState::Lost(reason) => {
            let effects = member.cohort.turn_lost(m, lease.turn(), reason, lease.closed_until());
            return (GivenBack::WasOver, effects);
        }
        LeaseState::Released => return (GivenBack::WasOver, Effects::default()),
    };
    let watch = member.cohort.watch_of(lease.turn().id(), lease.turn().first());
    let (closed_until, dropped) = (lease.closed_until(), end == HoldEnd::Dropped);
    let (after, effects) = member.cohort.released(m, lease.fence(), until, closed_until, dropped);
    if let Some(watch) = watch {
        // Inside the lock: whoever takes the next lease is watched after this one.
        cohorts.shared.watches.vacate(watch);
    }
    let back = match after {
        AfterLease::Settled => GivenBack::Settled,
        AfterLease::Driven => GivenBack::Driven,
        AfterLease::Ends(end) => GivenBack::Ends(prepare(&end)),
        AfterLease::WasOver => GivenBack::WasOver,
    };
    (back, effects)
}

/// How a turn is renewed for a lease: one that is not to be renewed still gets its whole ttl.
fn renewing(renews: bool, left: Duration, ttl: Ttl) -> Renewing {
    match renews {
        true => Renewing::Always,
        false if left < ttl.get().mul_f64(0.9) => Renewing::Once,
        false => Renewing::Never,
    }
}

impl InLine {
    /// The answer to the first task's own command.
    pub(crate) fn asked(
        &self,
        wish: &Wish,
        sent_at: Instant,
        result: Result<AcquireAnswer, StoreError>,
    ) -> Led {
        let Self { cohorts, name, ticket, left } = self;
        if let Ok(AcquireAnswer::Granted(granted)) = &result {
            cohorts.saw(name, granted);
        }
        let led = cohorts.with_new(name, &wish.metrics, |member, m| {
            let answer = Answer { sent_at, result };
            let (asked, effects) = member.cohort.asked(m, *ticket, wish.tries, answer);
            let led = match asked {
                Asked::Taken(taken) => {
                    left.store(true, Ordering::Relaxed);
                    Ok(cohorts.lease(member, m, *ticket, taken, wish))
                }
                Asked::Busy => Err(Led::Busy),
                Asked::Waits => Err(Led::Waits),
                Asked::Failed(error) => Err(Led::Failed(error)),
            };
            (led, effects)
        });
        match led {
            Some(Ok(lease)) => Led::Lease(lease.tell(&wish.metrics)),
            Some(Err(led)) => led,
            None => Led::Waits,
        }
    }

    /// Where the task stands, which is woken by `waker` when that changes.
    pub(crate) fn poll(&self, wish: &Wish, waker: &Waker) -> Poll<Found> {
        let Self { cohorts, name, ticket, left } = self;
        let found = cohorts.with(name, |member, m| {
            let (standing, effects) = member.cohort.stand(m, *ticket, waker);
            let found = match standing {
                Standing::Takes(taken) => {
                    left.store(true, Ordering::Relaxed);
                    Ok(cohorts.lease(member, m, *ticket, taken, wish))
                }
                Standing::Waits => Err(Poll::Pending),
                Standing::Dropped => Err(Poll::Ready(Found::Dropped)),
                Standing::Failed(error) => Err(Poll::Ready(Found::Failed(error))),
            };
            (found, effects)
        });
        match found {
            Some(Ok(lease)) => {
                let was_taken = lease.was_taken();
                Poll::Ready(Found::Lease(lease.tell(&wish.metrics), was_taken))
            }
            Some(Err(found)) => found,
            None => Poll::Ready(Found::Dropped),
        }
    }

    /// How many tasks and runtimes stand before one that has just come.
    pub(crate) fn arrived_behind(&self) -> u64 {
        self.cohorts.look(&self.name, crate::cohort::Cohort::length).unwrap_or(0)
    }

    /// Whether somebody is known to have the lock.
    pub(crate) fn is_known_taken(&self) -> bool {
        let look = crate::cohort::Cohort::is_known_taken;
        self.cohorts.look(&self.name, look).unwrap_or(false)
    }

    /// How many tasks of this runtime stand before this one, and how many runtimes before theirs.
    pub(crate) fn position(&self) -> (usize, Option<u64>) {
        let look = |cohort: &crate::cohort::Cohort| cohort.position(self.ticket);
        self.cohorts.look(&self.name, look).unwrap_or((0, None))
    }

    /// Why the runtime could not ask, if its last command failed.
    pub(crate) fn last_error(&self) -> Option<StoreError> {
        self.cohorts.look(&self.name, crate::cohort::Cohort::last_error).flatten()
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        if self.left.load(Ordering::Relaxed) {
            return;
        }
        let ticket = self.ticket;
        self.cohorts.with(&self.name, |member, m| ((), member.cohort.leave(m, ticket)));
    }
}
