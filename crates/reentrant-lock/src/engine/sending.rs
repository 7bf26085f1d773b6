use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Clock, FenceToken, Instant, LockName, StoreError, StoreErrorKind, Ttl,
    lease::{HoldUpdate, LossReason},
    metric::{ClassMetrics, ReleaseOutcome, ReleaseVia},
    outage::Watched,
    store::{Hold, HoldAnswer, Next, Release, ReleaseAnswer, StoreFuture, Withdraw},
};
use leasehold_watchdog::{HeldLease, Key};
use tokio::{select, sync::SemaphorePermit};

use crate::{
    cohort::{Answer, Env, NextPlace, NextTurn, TurnId, unheard},
    release::{self, Belief, Outcome, Step, rest},
};

use super::{
    backlog::{Backlog, Late},
    core::Engine,
    table::Member,
};

/// A command that is repeated until the server has answered.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) name: LockName,
    pub(crate) id: AcquisitionId,
    pub(crate) ttl: Ttl,
    pub(crate) command: Command,
    /// When the server forgets by itself what the job is about.
    pub(crate) expires: Instant,
    /// As what it counts; `None` where it counts as nothing, or was counted before.
    pub(crate) via: Option<ReleaseVia>,
    pub(crate) metrics: Arc<ClassMetrics>,
}

#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// End a lease.
    Release {
        fence: FenceToken,
        closed_until: Option<Instant>,
        /// Who sends it; `None` where the cohort does not wait for it.
        sender: Option<Sender>,
    },
    /// Take an acquisition back, whatever it has by now.
    Withdraw,
    /// Count the holds of a lease that goes on.
    Hold { lease: Arc<HeldLease>, update: HoldUpdate },
}

/// Who sends the release that ends a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sender {
    /// The task that gave the last lease back; the release queues no place.
    Holder(Belief),
    /// The runtime, which queues with the release for the tasks that wait by then.
    Runtime,
}

impl Job {
    fn turn(&self) -> Option<TurnId> {
        match &self.command {
            Command::Release { fence, sender: Some(_), .. } => {
                Some(TurnId { id: self.id, first: *fence })
            }
            _ => None,
        }
    }
}

/// A job that is being sent. Dropped before it was answered, as by a tokio runtime that stops, it
/// counts as unconfirmed.
#[derive(Debug)]
// ADR 0003
pub(super) struct Sending {
    engine: Arc<Engine>,
    job: Job,
    pub(super) key: Key,
    /// `None` until it was sent to its end.
    outcome: Option<Outcome>,
    /// Whether it goes on in the backlog, if it is not confirmed.
    is_late: bool,
    /// When it is given up there.
    until: Instant,
}

/// One copy of a command in flight.
struct Copy<'a> {
    sent_at: Instant,
    deadline: Instant,
    reply: Awaited<'a>,
}

/// The reply to come, as that to a release: one loop sends all jobs.
enum Awaited<'a> {
    Release(Watched<'a, ReleaseAnswer>),
    /// That to a withdrawal or a hold.
    Other(StoreFuture<'a, ReleaseAnswer>),
}

impl Awaited<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<ReleaseAnswer, StoreError>> {
        match self {
            Self::Release(reply) => Pin::new(reply).poll(cx),
            Self::Other(reply) => reply.as_mut().poll(cx),
        }
    }
}

/// The copies in flight. As a rule there is one: a list would cost an allocation for each release.
#[derive(Default)]
struct Copies<'a> {
    first: Option<Copy<'a>>,
    more: Vec<Copy<'a>>,
}

impl<'a> Copies<'a> {
    fn push(&mut self, copy: Copy<'a>) {
        match &mut self.first {
            None => self.first = Some(copy),
            Some(_) => self.more.push(copy),
        }
    }

    /// Yields the answer to a copy, or its failure. Without a clock no copy is given up.
    fn poll(
        &mut self,
        clock: Option<&dyn Clock>,
        cx: &mut Context<'_>,
    ) -> Option<Answer<ReleaseAnswer>> {
        let mut copies = self.first.iter_mut().chain(&mut self.more).enumerate();
        let (at, answer) = copies.find_map(|(at, copy)| {
            let is_over = |clock: &dyn Clock| clock.now() >= copy.deadline + Sending::GRACE;
            let result = match copy.reply.poll(cx) {
                Poll::Ready(result) => result,
                Poll::Pending if clock.is_some_and(is_over) => Err(unheard()),
                Poll::Pending => return None,
            };
            Some((at, Answer { sent_at: copy.sent_at, result }))
        })?;
        match at {
            0 => self.first = self.more.pop(),
            at => drop(self.more.swap_remove(at - 1)),
        }
        Some(answer)
    }

    fn given_up_at(&self) -> Option<Instant> {
        let deadlines = self.first.iter().chain(&self.more).map(|copy| copy.deadline);
        deadlines.min().map(|deadline| deadline + Sending::GRACE)
    }
}

enum Event {
    Reply(Answer<ReleaseAnswer>),
    /// A call waits for the withdrawal, or the queued place may have lost a message.
    CopyIsDue,
    Timer,
}

impl Sending {
    /// How long after its deadline a copy is given up that the store has not answered.
    pub(super) const GRACE: Duration = Duration::from_millis(50);

    /// From now on the job counts as pending; `None` when too many are.
    pub(super) fn new(engine: &Arc<Engine>, job: Job) -> Option<Self> {
        let closed = match job.command {
            Command::Release { .. } => Some(job.name.clone()),
            Command::Withdraw | Command::Hold { .. } => None,
        };
        let Some(key) = engine.pending.add(closed, job.turn().is_none()) else {
            job.count(Outcome::Unconfirmed);
            return None;
        };
        let until = job.expires + Backlog::LONGEST;
        Some(Self::of(engine, Late { key, job, until }))
    }

    /// A withdrawal from the backlog, for one more ttl.
    pub(super) fn again(engine: &Arc<Engine>, mut late: Late) -> Self {
        late.job.expires = engine.clock.now() + late.job.ttl.get();
        Self::of(engine, late)
    }

    fn of(engine: &Arc<Engine>, Late { key, job, until }: Late) -> Self {
        let engine = Arc::clone(engine);
        Self { engine, job, key, outcome: None, is_late: false, until }
    }

    /// Sends until the job is done; dropping the future gives the job up.
    pub(super) async fn run(mut self) -> Result<Outcome, StoreError> {
        let (outcome, failure) = self.send().await;
        self.outcome = Some(outcome);
        let may_come = failure.as_ref().is_none_or(|error| error.kind().is_transient());
        self.is_late = may_come && matches!(self.job.command, Command::Withdraw);
        drop(self);
        match outcome {
            Outcome::Unconfirmed => Err(failure.unwrap_or_else(unheard)),
            outcome => Ok(outcome),
        }
    }

    async fn send(&self) -> (Outcome, Option<StoreError>) {
        let Engine { clock, entropy, .. } = &*self.engine;
        let belief = match self.job.command {
            Command::Release { sender: Some(Sender::Holder(belief)), .. } => Some(belief),
            _ => None,
        };
        let mut now = clock.now();
        let mut rules = release::Release::new(now, self.job.expires, belief);
        let mut copies = Copies::default();
        let (mut permit, mut next, mut failure) = (None, None, None);
        loop {
            match rules.next(now) {
                Step::Done(outcome) => return (outcome, failure),
                Step::Send => {
                    let is_first = rules.is_unsent();
                    if copies.first.is_none() && !self.is_awaited(is_first) {
                        permit = self.permit(now).await;
                        now = clock.now();
                        if now >= self.job.expires {
                            continue;
                        }
                    }
                    let Ok(place) = self.next_place(is_first) else {
                        rules.on_next_turn();
                        continue;
                    };
                    next = place;
                    let keep = match self.job.command {
                        Command::Release { closed_until, .. } => rest(closed_until, now),
                        Command::Withdraw | Command::Hold { .. } => None,
                    };
                    // If a place depends on it, another copy follows whether or not this one is
                    // answered, as a heartbeat would.
                    let pause =
                        |next: NextPlace| self.engine.timing.heartbeat_pause(next.terms.ttl);
                    rules.on_send(now, keep, next.map(|next| now + pause(next)));
                    copies.push(self.copy(keep, next, now));
                }
                Step::Wait(until) => {
                    let event = self.wait(&mut copies, next.is_some(), until).await;
                    now = clock.now();
                    match event {
                        Event::Timer => {}
                        Event::CopyIsDue => rules.on_copy_due(now),
                        Event::Reply(answer) => {
                            permit = permit.filter(|_| copies.first.is_some());
                            failure = answer.result.as_ref().err().cloned().or(failure);
                            let jitter =
                                answer.result.as_ref().map_or_else(|_| entropy.fraction(), |_| 0.0);
                            rules.on_reply(now, jitter, &answer.result);
                            if !self.on_reply(answer) {
                                rules.on_next_turn();
                            }
                        }
                    }
                }
            }
        }
    }

    async fn wait(
        &self,
        copies: &mut Copies<'_>,
        has_place: bool,
        until: Option<Instant>,
    ) -> Event {
        let Engine { clock, .. } = &*self.engine;
        let mut timer = until.map(|at| clock.sleep_until(at));
        let mut is_first_poll = true;
        poll_fn(|cx| {
            let is_first_poll = std::mem::take(&mut is_first_poll);
            if let Some(answer) = copies.poll((!is_first_poll).then_some(&**clock), cx) {
                return Poll::Ready(Event::Reply(answer));
            }
            let may_be_wanted = match self.job.command {
                Command::Release { .. } => has_place,
                Command::Withdraw => copies.first.is_none(),
                Command::Hold { .. } => false,
            };
            if may_be_wanted && self.is_copy_wanted(cx.waker()) {
                return Poll::Ready(Event::CopyIsDue);
            }
            // As a rule the store answers by its deadline, so a timer is set only if a poll came
            // without an answer.
            if !is_first_poll && timer.is_none() {
                timer = copies.given_up_at().map(|at| clock.sleep_until(at));
            }
            match timer.as_mut().map(|timer| timer.as_mut().poll(cx)) {
                Some(Poll::Ready(())) => Poll::Ready(Event::Timer),
                _ => Poll::Pending,
            }
        })
        .await
    }

    /// Whether a place that is queued, or a call that waits for the withdrawal, needs another copy
    /// at once; otherwise `waker` is woken when it does.
    fn is_copy_wanted(&self, waker: &Waker) -> bool {
        let wanted = self.engine.with(&self.job.name, |member, _| match self.job.turn() {
            Some(turn) => member.cohort.has_lost_messages(turn, waker),
            None => member.cohort.is_withdrawal_wanted(self.job.id, waker),
        });
        wanted.unwrap_or(false)
    }

    /// Counts the answer, and passes it to the cohort; `false` when the next turn has begun.
    fn on_reply(&self, answer: Answer<ReleaseAnswer>) -> bool {
        if let Err(error) = &answer.result {
            self.engine.metrics.store().error(error.kind());
            self.engine.pending.attempt_failed(self.key, error);
            // It has not run: nobody learns more by waiting for it.
            let has_not_run = error.is_answer() || error.kind() == StoreErrorKind::Definite;
            if has_not_run && matches!(self.job.command, Command::Withdraw) {
                self.engine.with(&self.job.name, |member, env| {
                    member.cohort.on_withdrawal_refused(env, error);
                });
            }
        }
        let is_answered =
            answer.result.as_ref().map_or_else(|error| !error.kind().is_transient(), |_| true);
        let Some(turn) = self.job.turn() else { return true };
        if let Ok(ReleaseAnswer::NextGranted(granted)) = &answer.result {
            self.engine.saw(answer.sent_at, &self.job.name, granted);
        }
        let repeats = self
            .engine
            .with(&self.job.name, |member, env| member.cohort.on_release_reply(env, turn, answer));
        repeats.unwrap_or(true) || is_answered
    }

    /// The place that is queued with the next copy, chosen with the first one.
    fn next_place(&self, is_first: bool) -> Result<Option<NextPlace>, NextTurn> {
        match self.job.command {
            Command::Release { sender: Some(Sender::Holder(_)), .. } if is_first => Ok(None),
            _ => {
                let Some(turn) = self.job.turn() else { return Ok(None) };
                let send = |member: &mut Member, env: &mut Env<'_>| {
                    member.cohort.on_release_send(env, turn)
                };
                self.engine.with(&self.job.name, send).unwrap_or(Ok(None))
            }
        }
    }

    fn copy(&self, keep: Option<Duration>, next: Option<NextPlace>, now: Instant) -> Copy<'_> {
        let (engine, job) = (&*self.engine, &self.job);
        let (store, name, id) = (&engine.store, job.name.clone(), job.id);
        let timeout = match next {
            Some(next) => engine.place_deadline(next.terms.ttl),
            None => engine.timing.command_deadline(job.ttl),
        };
        let deadline = job.expires.min(now + timeout);
        let reply = match &job.command {
            Command::Release { fence, .. } => {
                let next = next.map(|next| Next {
                    id: next.id,
                    ttl: next.terms.ttl,
                    watermark: engine.watermarks.of(now, &name).max(Some(*fence)),
                    label: engine.label.clone(),
                    keeps: next.keeps,
                    heartbeat: next.heartbeat,
                });
                let release = Release { name, id, fence: *fence, keep, next };
                Awaited::Release(store.ask(now, release, deadline))
            }
            Command::Withdraw => Awaited::Other(Box::pin(async move {
                let answer = store.ask(now, Withdraw { name, id }, deadline).await?;
                Ok(if answer.ended_grant { ReleaseAnswer::Released } else { ReleaseAnswer::Gone })
            })),
            Command::Hold { lease, update } => {
                let (turn, update, ttl) = (lease.turn(), *update, job.ttl);
                let (fence, acks) = (turn.first(), turn.terms().acks);
                let hold = Hold { name, id, fence, update, ttl, acks };
                Awaited::Other(Box::pin(async move {
                    match store.ask(now, hold, deadline).await? {
                        HoldAnswer::Held { remaining } => {
                            let _ = lease.extended(now, remaining);
                            Ok(ReleaseAnswer::Released)
                        }
                        HoldAnswer::Gone => Ok(lost(engine, lease, LossReason::Gone)),
                        HoldAnswer::DataLost => Ok(lost(engine, lease, LossReason::DataLost)),
                    }
                }))
            }
        };
        Copy { sent_at: now, deadline, reply }
    }

    /// Whether a task waits for the answer, or a lock is to stay closed and its ttl may end before.
    fn is_awaited(&self, is_first: bool) -> bool {
        let Job { command, via, .. } = &self.job;
        match command {
            Command::Release { closed_until: Some(_), .. } => true,
            Command::Release { sender: Some(Sender::Runtime), .. } => {
                *via != Some(ReleaseVia::Drop)
            }
            Command::Release { sender: Some(Sender::Holder(_)), .. } | Command::Hold { .. } => {
                is_first
            }
            Command::Release { sender: None, .. } | Command::Withdraw => false,
        }
    }

    /// Bounds the commands that no task waits for; a further one waits a claim window at most. A
    /// withdrawal goes at once when a call waits for it.
    async fn permit(&self, now: Instant) -> Option<SemaphorePermit<'_>> {
        let Engine { clock, entropy, timing, .. } = &*self.engine;
        let Job { command, expires, ttl, .. } = &self.job;
        let left = expires.saturating_since(now) / 2;
        // Those that begin together are not to be sent together in the end.
        let patience = timing.claim_window(*ttl).min(left);
        let patience = patience.mul_f64(1.0 - entropy.fraction() / 2.0);
        let is_withdrawal = matches!(command, Command::Withdraw);
        let wanted = poll_fn(|cx| {
            let is_wanted = is_withdrawal && self.is_copy_wanted(cx.waker());
            if is_wanted { Poll::Ready(()) } else { Poll::Pending }
        });
        select! {
            biased;
            permit = self.engine.background.acquire() => permit.ok(),
            () = wanted => None,
            () = clock.sleep_until(now + patience) => None,
        }
    }
}

/// The server does not have the lease whose holds were to be changed.
fn lost(engine: &Engine, lease: &HeldLease, reason: LossReason) -> ReleaseAnswer {
    let _ = lease.lose(reason);
    engine.on_lost(lease.turn(), reason, None);
    ReleaseAnswer::Gone
}

impl Job {
    pub(super) fn count(&self, outcome: Outcome) {
        let Some(via) = self.via else { return };
        self.metrics.release(outcome.metric(), via);
        if outcome.metric() == ReleaseOutcome::Unconfirmed {
            // The failures of its commands are logged, and the metrics count it.
            tracing::debug!(
                lock = %self.name, lease = %self.id,
                "a release was not confirmed by the server; the lease ends with its ttl"
            );
        }
        if let Outcome::Lost(reason) = outcome {
            self.metrics.lost(reason);
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let Self { engine, job, key, .. } = self;
        let outcome = self.outcome.unwrap_or(Outcome::Unconfirmed);
        if outcome == Outcome::Unconfirmed
            && let Some(turn) = job.turn()
        {
            // Without effect when the server has refused, which the cohort knows.
            engine.with(&job.name, |member, env| member.cohort.on_release_given_up(env, turn));
        }
        let late = || Late { key: *key, job: job.clone(), until: self.until };
        if self.is_late && outcome == Outcome::Unconfirmed && engine.postpone(late()) {
            return;
        }
        if let Command::Withdraw = job.command {
            engine.with(&job.name, |member, env| member.cohort.on_withdrawn(env, job.id));
        }
        job.count(outcome);
        // Last: what follows from the end is pending by now.
        match &job.command {
            Command::Release { .. } if self.outcome.is_none() => engine.on_left(*key, &job.name),
            _ => engine.pending.done(*key, outcome),
        }
    }
}
