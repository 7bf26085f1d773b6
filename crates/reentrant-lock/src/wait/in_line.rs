use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use leasehold_core::{
    Instant, LockName, Sleep, StoreError, StoreErrorKind,
    lease::{Holds, LeaseState},
    store::{Acquire as AcquireCommand, AcquireAnswer, Inspection, StoreFuture},
};
use leasehold_watchdog::HeldLease;

use crate::{
    blocked::{Holder, Report, next_report},
    caller::{Caller, Owned},
    cohort::{Cohort, Lead, unheard},
    driver::{Entered, Found, InLine, Led, Wish},
    endurance::Endurance,
    engine::Engine,
    error::{AcquireError, HolderInfo, QueuePosition, ReenterError, WaitTimeout},
    guard::Guard,
    held::Held,
    owner::Owner,
    suspicion::Suspicion,
    tally::Tally,
};

/// One call to acquire a lock, with its options checked.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: LockName,
    pub(crate) wish: Wish,
    pub(crate) patience: Patience,
    pub(crate) outage_patience: Duration,
    pub(crate) owner: Option<Owner>,
}

/// What a wait in line came to.
enum Turned {
    /// Nobody is let in any more.
    Closed,
    /// The runtime is just giving the lock back, and the task does not want to wait in line.
    Settles,
    /// The lock is taken, and the task does not want to wait.
    Taken,
    /// Something was found there.
    Found(Found),
    /// Somebody else has the lock, and the task did not want to wait.
    Busy(InLine),
    /// The task's own command failed for good, or it did not want to wait.
    Failed(StoreError),
    /// The owner holds the lock by now.
    Holds,
    /// Patience is over.
    TimeOver(InLine),
    /// The server has not answered for too long, or not at all.
    Silent(AcquireError),
}

/// The first task's own command, on its way.
struct Own<'a> {
    sent_at: Instant,
    deadline: Instant,
    answer: StoreFuture<'a, AcquireAnswer>,
    /// Whether it was polled before.
    is_sent: bool,
}

/// For how long to wait.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience {
    /// Not at all: a taken lock is an answer.
    Try,
    /// For a while.
    For(Duration),
    /// Without a limit.
    Forever,
}

impl Patience {
    /// When it ends for a wait that began at `started`; `None` for never, or with the answer.
    fn ends(self, started: Instant) -> Option<Instant> {
        match self {
            Self::Try | Self::Forever | Self::For(Duration::ZERO) => None,
            Self::For(wait) => Some(started + wait),
        }
    }
}

impl Wait {
    /// Acquires, or gives up.
    ///
    /// Not an `async fn`, which would keep itself twice: many tasks may wait for long.
    #[expect(
        clippy::manual_async_fn,
        reason = "it would keep itself twice, in every task that waits"
    )]
    pub(crate) fn run(mut self) -> impl Future<Output = Result<Guard, AcquireError>> + Send {
        async move {
            let started = self.engine.clock.now();
            let tries = matches!(self.patience, Patience::Try);
            let mut tally = Tally::new(&self.wish.metrics, tries, started);
            let mut owned = Owned::Given;
            if self.owner.is_none() {
                self.owner = Owner::of_scope(self.engine.runtime_id());
                owned = if self.owner.is_some() { Owned::Scoped } else { Owned::Fresh };
            }
            self.wish.caller = Some(Caller::here(owned));
            let mut suspicion = Suspicion::default();
            let mut outcome = {
                let mut wait = pin!(self.wait(&mut tally, started));
                let waited = poll_fn(|cx| {
                    let outcome = wait.as_mut().poll(cx);
                    if outcome.is_pending() {
                        suspicion.look(&self.engine.cohorts, &self.name, &self.wish, cx);
                    }
                    outcome
                });
                waited.await
            };
            if let Err(error) = &mut outcome {
                suspicion.explain(error);
            }
            tally.finish(&outcome);
            outcome
        }
    }

    #[expect(clippy::manual_async_fn, reason = "as above")]
    fn wait<'a>(
        &'a self,
        tally: &'a mut Tally,
        started: Instant,
    ) -> impl Future<Output = Result<Guard, AcquireError>> + Send + 'a {
        async move {
            let (mut ends, mut comes_back) = (self.patience.ends(started), false);
            let mut endurance = Endurance::new(self.outage_patience, started);
            loop {
                // A task that is polled seldom may come here again and again, and always too late.
                if std::mem::replace(&mut comes_back, true) && self.is_over(ends) {
                    if let Some(error) = self.silent_throughout(started) {
                        return Err(error);
                    }
                    return Err(Box::pin(self.timeout(started, None)).await);
                }
                let closed = self.engine.has_stopped() || self.engine.closed.is_cancelled();
                // Made before the look, so that a lease gained meanwhile is not missed.
                let holds = self.owner.as_ref().map(|owner| self.holds_by(owner, owner.gained()));
                let mut held = self.held();
                if closed {
                    // A drain refuses new leases; one that is still held may be entered.
                    held = held.filter(|held| held.lease.state().is_held());
                    if held.is_none() {
                        return Err(self.closed());
                    }
                }
                if let Some(held) = held
                    && let Some(guard) = Box::pin(reenter(held, ends)).await?
                {
                    if let Some(hold) = self.wish.hold_at_least
                        && let LeaseState::Lost(reason) =
                            guard.close_if_held(self.engine.clock.now() + hold)
                    {
                        let (lock, fence) = (self.name.clone(), guard.fence());
                        return Err(AcquireError::Lost { lock, fence, reason });
                    }
                    tally.reentered = true;
                    return Ok(guard);
                }
                let times = (started, ends, &mut endurance);
                match self.in_line(holds, times, tally).await {
                    Turned::Closed => return Err(self.closed()),
                    Turned::Settles => {
                        // Its own command included, that takes no longer than one command may.
                        let time = self.engine.timing.command_deadline(self.wish.ttl);
                        let until = *ends.get_or_insert(started + time);
                        if !Box::pin(self.settled(until)).await {
                            return Err(self.engine.failed(&self.name, started, unheard()));
                        }
                    }
                    Turned::Taken => {
                        if self.engine.outages().outage().is_some()
                            && !self.knows(Cohort::is_held_here)
                        {
                            // Others ask for it already, and are not answered.
                            return Err(self.engine.unavailable(&self.name, started, None));
                        }
                        tally.finds_taken();
                        return Err(Box::pin(self.timeout(started, None)).await);
                    }
                    Turned::Found(Found::Lease(lease, was_taken)) => {
                        if was_taken {
                            tally.finds_taken();
                        }
                        return self.take_over(lease, started);
                    }
                    Turned::Found(Found::Failed(error)) => {
                        return Err(error.for_lock(&self.name).into());
                    }
                    Turned::Found(Found::Dropped) | Turned::Holds => {}
                    Turned::Failed(error) => {
                        return Err(self.engine.failed(&self.name, started, error));
                    }
                    Turned::Busy(in_line) => {
                        tally.finds_taken();
                        return Err(Box::pin(self.timeout(started, Some(in_line))).await);
                    }
                    Turned::TimeOver(_) if self.wish.tries => {
                        return Err(self.engine.failed(&self.name, started, unheard()));
                    }
                    Turned::TimeOver(in_line) => {
                        if self.knows(Cohort::is_known_taken) {
                            tally.finds_taken();
                        }
                        return Err(Box::pin(self.timeout(started, Some(in_line))).await);
                    }
                    Turned::Silent(error) => return Err(error),
                }
            }
        }
    }

    fn enter(&self, cx: &Context<'_>) -> Entered {
        self.engine.cohorts.enter(&self.name, &self.wish, cx.waker())
    }

    /// Whether it is too late to go on waiting.
    fn is_over(&self, ends: Option<Instant>) -> bool {
        ends.is_some_and(|at| at <= self.engine.clock.now())
    }

    /// Waits until a release of this runtime is over, at most until some time; whether it is.
    async fn settled(&self, until: Instant) -> bool {
        poll_fn(|cx| self.engine.cohorts.settled(&self.name, until, cx.waker())).await
    }

    /// Asks for all who come after it, as the first.
    fn ask(&self, lead: Lead) -> Own<'_> {
        let Self { engine, name, wish, .. } = self;
        let sent_at = engine.clock.now();
        let deadline = sent_at + engine.timing.command_deadline(wish.ttl);
        let answer = engine.store.acquire(AcquireCommand {
            name,
            id: lead.id,
            ttl: wish.ttl,
            watermark: engine.cohorts.shared.watermarks.of(sent_at, name),
            label: wish.label.as_ref().unwrap_or(&engine.label),
            wait: lead.heartbeat,
            deadline,
        });
        Own { sent_at, deadline, answer, is_sent: false }
    }

    /// Comes in, and waits in line until it is this task's turn or something else comes first; the first task
    /// waits for the answer to its own command as well.
    fn in_line<'a>(
        &'a self,
        mut holds: Option<Soon<'a>>,
        (started, ends, endurance): (Instant, Option<Instant>, &'a mut Endurance),
        tally: &'a mut Tally,
    ) -> impl Future<Output = Turned> + Send + 'a {
        let mut report_at = self.next_report(started);
        let mut timer = Timer::default();
        endurance.looks_from(self.engine.clock.now());
        // Entered here and nowhere else: whatever an async function names it keeps, in every task that
        // waits, also when it has passed it on.
        let mut stands = None;
        poll_fn(move |cx| {
            let engine = &*self.engine;
            if stands.is_none() {
                match self.enter(cx) {
                    Entered::Closed => return Poll::Ready(Turned::Closed),
                    Entered::Settles => return Poll::Ready(Turned::Settles),
                    Entered::Taken => return Poll::Ready(Turned::Taken),
                    Entered::Leads(in_line, lead) => stands = Some((in_line, Some(self.ask(lead)))),
                    Entered::Waits(in_line) => stands = Some((in_line, None)),
                }
            }
            let Some((in_line, own)) = &mut stands else { return Poll::Pending };
            match self.look_at_own(in_line, own, cx) {
                None | Some(Led::Waits) => {}
                Some(Led::Lease(lease)) => {
                    return Poll::Ready(Turned::Found(Found::Lease(lease, false)));
                }
                Some(Led::Failed(error)) => return Poll::Ready(Turned::Failed(error)),
                Some(Led::Busy) => {
                    return leave(&mut stands, Turned::Busy);
                }
            }
            let mut ends = ends;
            match own {
                None => tally.waits(in_line),
                Some(_) if !(engine.cohorts.shared.rules.lead_listens)() => return Poll::Pending,
                // It has just been sent: nothing can have come yet, and as a rule the answer is
                // next. A push wakes the task, and so does the runtime when that takes long.
                Some(own) if !own.is_sent => {
                    own.is_sent = true;
                    if earlier(ends, endurance.look_at()) >= own.deadline {
                        return Poll::Pending;
                    }
                }
                Some(own) if self.wish.tries => ends = ends.or(Some(own.deadline)),
                Some(_) => {}
            }
            if let Poll::Ready(found) = in_line.poll(&self.wish, cx.waker()) {
                return Poll::Ready(Turned::Found(found));
            }
            if is_over(holds.as_mut(), cx) {
                return Poll::Ready(Turned::Holds);
            }
            loop {
                // The clock as well: timers of an executor that is late are late, too.
                let now = engine.clock.now();
                if ends.is_some_and(|ends| ends <= now) {
                    // Before its own command is dropped, which would count as given up.
                    if let Some(error) = self.silent_throughout(started) {
                        return Poll::Ready(Turned::Silent(error));
                    }
                    return leave(&mut stands, Turned::TimeOver);
                }
                if endurance.is_over(now, || engine.outages().silent_since()) {
                    let error = engine.unavailable(&self.name, started, None);
                    return Poll::Ready(Turned::Silent(error));
                }
                if report_at <= now {
                    self.report(in_line, now.saturating_since(started), now);
                    report_at = self.next_report(started);
                }
                let next = earlier(ends, report_at.min(endurance.look_at()));
                if !timer.is_over(engine, next, cx) {
                    return Poll::Pending;
                }
            }
        })
    }

    /// Polls the first task's own command, if there is one.
    fn look_at_own(
        &self,
        in_line: &InLine,
        own: &mut Option<Own<'_>>,
        cx: &mut Context<'_>,
    ) -> Option<Led> {
        let Own { sent_at, answer, .. } = own.as_mut()?;
        let (sent_at, Poll::Ready(answer)) = (*sent_at, answer.as_mut().poll(cx)) else {
            return None;
        };
        *own = None;
        Some(in_line.asked(&self.wish, sent_at, self.engine.counted(answer)))
    }

    /// When to report a wait that lasts.
    fn next_report(&self, started: Instant) -> Instant {
        let Engine { clock, timing, .. } = &*self.engine;
        next_report(started, clock.now(), timing.blocked_after)
    }

    /// Reports a call that has waited for long, unless enough was reported.
    fn report(&self, in_line: &InLine, waited: Duration, now: Instant) {
        let Self { engine, name, wish, .. } = self;
        let Some(left_out) = engine.cohorts.take_report(name, now) else { return };
        let (tasks, runtimes) = in_line.position();
        let (lock, class) = (name.clone(), wish.metrics.class().clone());
        let position = QueuePosition { runtimes, tasks };
        let report = Report { lock, class, waited, position, left_out };
        match in_line.held_here() {
            Some(lease) => report.tell(Some(Holder::here(&lease, engine.label.to_string(), now))),
            None => engine.cohorts.report_after_a_look(report),
        }
    }

    /// Resolves once the owner holds this lock; `gained` resolves when it got any lease.
    fn holds_by<'a>(
        &'a self,
        owner: &'a Owner,
        gained: impl Future<Output = ()> + Send + 'a,
    ) -> Soon<'a> {
        Box::pin(async move {
            gained.await;
            loop {
                // Made before the look, so that a lease gained meanwhile is not missed.
                let gained = owner.gained();
                if owner.held(&self.name).is_some() {
                    return;
                }
                gained.await;
            }
        })
    }

    /// Nobody is let in any more.
    fn closed(&self) -> AcquireError {
        if self.engine.closed.is_cancelled() {
            return AcquireError::ShutDown { lock: self.name.clone() };
        }
        runtime_stopped().for_lock(&self.name).into()
    }

    /// The lease that the owner has already, if it has one.
    fn held(&self) -> Option<Arc<Held>> {
        let held = self.owner.as_ref().and_then(|owner| owner.held(&self.name));
        // A lease that its last guard is just releasing is nobody's to enter.
        held.filter(|held| held.lease.state() != LeaseState::Released)
    }

    /// Makes a guard of a lease.
    fn take_over(&self, lease: Arc<HeldLease>, started: Instant) -> Result<Guard, AcquireError> {
        let Self { engine, owner, .. } = self;
        tracing::debug!(lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), "acquired");
        self.wish.metrics.waited(lease.since().saturating_since(started));
        let holds = Mutex::new(Holds::first());
        let held =
            Arc::new(Held { engine: Arc::clone(engine), lease, owner: owner.clone(), holds });
        if let Some(owner) = owner {
            owner.gain(&held);
        }
        let guard = Guard::new(held);
        // After the lease is watched: a shutdown from now on finds it there.
        if engine.closed.is_cancelled() {
            return Err(AcquireError::ShutDown { lock: self.name.clone() });
        }
        Ok(guard)
    }

    /// What a wait ends with that saw no answer at all while commands failed, or while nobody knows
    /// who has the lock; `None` when the server answers, and the lock is taken.
    fn silent_throughout(&self, started: Instant) -> Option<AcquireError> {
        let outages = self.engine.outages();
        if self.wish.tries || outages.heard_since(started) {
            return None;
        }
        let is_unknown =
            outages.has_been_silent_since(started) && !self.knows(Cohort::is_known_taken);
        (outages.outage().is_some() || is_unknown)
            .then(|| self.engine.unavailable(&self.name, started, None))
    }

    /// Whether something is known of the lock.
    fn knows(&self, look: impl FnOnce(&Cohort) -> bool) -> bool {
        self.engine.cohorts.look(&self.name, look).unwrap_or(false)
    }

    async fn timeout(&self, started: Instant, in_line: Option<InLine>) -> AcquireError {
        let waited = self.engine.clock.now().saturating_since(started);
        let (position, last_error) = match &in_line {
            Some(in_line) if !self.wish.tries => {
                let (tasks, runtimes) = in_line.position();
                (Some(QueuePosition { runtimes, tasks }), in_line.last_error())
            }
            _ => (None, None),
        };
        // Nobody waits for the lock any more while it is found out who has it.
        drop(in_line);
        let holder = match (self.patience, &last_error) {
            (Patience::Try, _) | (_, Some(_)) => None,
            _ => self.holder().await,
        };
        let lock = self.name.clone();
        AcquireError::Timeout(Box::new(WaitTimeout {
            lock,
            waited,
            position,
            holder,
            last_error,
            self_wait: None,
        }))
    }

    async fn holder(&self) -> Option<HolderInfo> {
        let deadline = self.engine.clock.now() + LONGEST_LOOK;
        match self.engine.store.inspect(&self.name, deadline).await {
            Ok(Inspection::Held(record)) => Some(HolderInfo {
                this_runtime: record.id.runtime() == self.engine.runtime_id(),
                label: record.label,
                lease: record.id,
                fence: record.fence,
                held_for: record.held_for,
                remaining: record.remaining,
                kept: record.kept,
            }),
            Ok(Inspection::Free { .. }) | Err(_) => None,
        }
    }
}

/// Enters the lease that the owner has already.
async fn reenter(held: Arc<Held>, until: Option<Instant>) -> Result<Option<Guard>, AcquireError> {
    match Guard::enter(&held, until).await {
        Ok(entered) => Ok(entered),
        Err(ReenterError::Lost { lock, fence, reason }) => {
            Err(AcquireError::Lost { lock, fence, reason })
        }
        Err(ReenterError::TooManyHolds { lock }) => Err(AcquireError::TooManyHolds { lock }),
        Err(ReenterError::Store(error)) => Err(error.into()),
    }
}

/// A task stands in line no longer, and takes its place along.
fn leave(
    stands: &mut Option<(InLine, Option<Own<'_>>)>,
    turned: impl FnOnce(InLine) -> Turned,
) -> Poll<Turned> {
    stands.take().map_or(Poll::Pending, |(in_line, _)| Poll::Ready(turned(in_line)))
}

fn is_over(soon: Option<&mut Soon<'_>>, cx: &mut Context<'_>) -> bool {
    soon.is_some_and(|soon| soon.as_mut().poll(cx).is_ready())
}

/// Boxed, as few who wait need it.
type Soon<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Nobody is left who would renew a lease.
fn runtime_stopped() -> StoreError {
    StoreError::new(
        StoreErrorKind::Config,
        "the tokio runtime that the lock runtime lives on has stopped",
        "make it on a tokio runtime that lives as long as the locks, or use own_thread()",
    )
}

/// The earlier of two times, of which the first may never come.
fn earlier(one: Option<Instant>, other: Instant) -> Instant {
    one.map_or(other, |one| one.min(other))
}

/// One timer for all that a wait is woken for, as many tasks may wait; set anew when the time changes.
#[derive(Default)]
struct Timer(Option<(Instant, Sleep)>);

impl Timer {
    /// Whether it is `at`; the task is woken by then.
    fn is_over(&mut self, engine: &Engine, at: Instant, cx: &mut Context<'_>) -> bool {
        let (_, sleep) = match &mut self.0 {
            Some(timer) if timer.0 == at => timer,
            other => other.insert((at, engine.clock.sleep_until(at))),
        };
        sleep.as_mut().poll(cx).is_ready()
    }
}

/// A timeout is not held up for long by finding out who holds the lock.
const LONGEST_LOOK: Duration = Duration::from_millis(250);
