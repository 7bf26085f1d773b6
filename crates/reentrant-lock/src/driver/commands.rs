use std::{
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use leasehold_core::{
    AcquisitionId, Instant, LockName, Sleep, StoreError, StoreErrorKind, Ttl,
    lease::Grant,
    metric::{ClassMetrics, ReleaseOutcome, ReleaseVia},
    store::{Next, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreFuture},
};

use tokio::{select, sync::SemaphorePermit};

use crate::{
    closing::rest,
    cohort::{Again, Answer, Effects, End, Moment, Send},
    engine::{Announced, Backoff, Job, Task},
};

use super::{
    cohorts::{Cohorts, Member, Shared},
    heartbeats::Beats,
};

impl Cohorts {
    /// Makes ready what the runtime drives. A release counts as pending from then on.
    pub(super) fn announce(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        send: Send,
    ) -> Option<Command> {
        let cohorts = self.myself()?;
        Some(match send {
            Send::End(end) => {
                Command::End(Box::new(self.announce_end(cohorts, name, metrics, end)))
            }
            Send::Confirm(grant) => Command::Confirm(Confirming { cohorts, grant: Some(grant) }),
            Send::Ask(beat) => Command::Ask(cohorts.beats([beat])),
        })
    }

    fn announce_end(
        &self,
        cohorts: Arc<Self>,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        end: End,
    ) -> EndingTurn {
        let via = end.via.unwrap_or(ReleaseVia::Explicit);
        let (fence, closed_until) = (end.first, end.closed_until);
        let job = Job {
            name: name.clone(),
            id: end.id,
            task: Task::Release { fence, via, turn: None, closed_until, copies: None },
            expires: end.until,
            timeout: self.shared.timing.command_deadline(end.ttl),
            metrics: Arc::clone(metrics),
            waits: None,
        };
        let announced = self.shared.reaper.announce_end(&job);
        let outcome = ReleaseOutcome::Unconfirmed;
        EndingTurn { cohorts, end, job, announced, outcome }
    }

    /// Makes ready what takes an acquisition back; from then on it counts as pending.
    pub(super) fn announce_withdrawal(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        (id, ttl): (AcquisitionId, Ttl),
    ) -> (Announced, Job) {
        let shared = &self.shared;
        let job = Job {
            name: name.clone(),
            id,
            task: Task::Withdraw,
            expires: shared.clock.now() + ttl.get(),
            timeout: shared.timing.command_deadline(ttl),
            metrics: Arc::clone(metrics),
            waits: None,
        };
        (shared.reaper.announce(&job), job)
    }

    /// A turn's end was answered, whoever sent it.
    pub(crate) fn turn_ended(
        &self,
        name: &LockName,
        end: &End,
        answer: Answer<ReleaseAnswer>,
    ) -> Again {
        let granted = match &answer.result {
            Ok(ReleaseAnswer::NextGranted(granted)) => Some(granted.clone()),
            _ => None,
        };
        if let Some(granted) = granted {
            self.saw(name, &granted);
        }
        let ended = self.with(name, |member, m| member.cohort.ended(m, end.id, end.first, answer));
        ended.unwrap_or(Again::No)
    }

    /// The runtime sees to a turn's end from now on, however long it takes.
    pub(crate) fn turn_end_driven(&self, name: &LockName, end: &End) {
        self.with(name, |member, _| {
            member.cohort.drives_end(end.id, end.first);
            ((), nothing())
        });
    }

    /// A turn's end was never answered, and nobody tries any more.
    pub(crate) fn turn_given_up(&self, name: &LockName, end: &End) {
        self.with(name, |member, m| ((), member.cohort.gave_up_ending(m, end.id, end.first)));
    }
}

/// A command that the runtime drives; not to be dropped inside of a lock.
#[derive(Debug)]
#[must_use = "dropped, it counts as given up"]
pub(super) enum Command {
    /// Ends a turn, until the store has answered or has forgotten it by itself.
    End(Box<EndingTurn>),
    /// Confirms a grant by a renewal.
    Confirm(Confirming),
    /// Asks for a lock that was just given back.
    Ask(Beats),
}

impl Command {
    pub(super) async fn drive(self) {
        match self {
            Self::End(ending) => ending.drive().await,
            Self::Confirm(confirming) => confirming.drive().await,
            Self::Ask(beats) => beats.drive().await,
        }
    }
}

/// The end of a turn on its way; dropped before it was answered, it counts as given up.
#[derive(Debug)]
pub(super) struct EndingTurn {
    cohorts: Arc<Cohorts>,
    end: End,
    /// What it counts as for a shutdown, which waits for it.
    job: Job,
    announced: Announced,
    outcome: ReleaseOutcome,
}

impl EndingTurn {
    async fn drive(mut self: Box<Self>) {
        let cohorts = Arc::clone(&self.cohorts);
        let shared = &cohorts.shared;
        let mut pauses = Backoff::new(Arc::clone(&shared.entropy));
        let mut sent_before = false;
        loop {
            let permit = self.permit(&cohorts).await;
            if shared.clock.now() >= self.end.until {
                return;
            }
            if !std::mem::replace(&mut sent_before, true) {
                self.depart();
            } else if !self.is_wanted() {
                // The next turn has begun by a push, so this one has ended.
                self.outcome = ReleaseOutcome::Released;
                return;
            }
            let answer = self.send().await;
            drop(permit);
            let outcome = outcome(&answer.result);
            if cohorts.turn_ended(&self.job.name, &self.end, answer) == Again::No {
                self.outcome = outcome;
                return;
            }
            let pause = shared.clock.now() + pauses.next_pause();
            self.pause(pause.min(self.end.until)).await;
        }
    }

    /// Waits until some time, or until the next copy is to be sent at once.
    async fn pause(&self, until: Instant) {
        let mut sleep = self.cohorts.shared.clock.sleep_until(until);
        let mut is_over =
            |cx: &mut Context<'_>| self.repeats_now(cx) || sleep.as_mut().poll(cx).is_ready();
        poll_fn(|cx| if is_over(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Whether a place depends on the answer, and messages to it may have been lost.
    fn repeats_now(&self, cx: &Context<'_>) -> bool {
        let (id, first) = (self.end.id, self.end.first);
        let look = |member: &mut Member, _: &Moment<'_>| {
            (member.cohort.repeats_now(id, first, cx.waker()), nothing())
        };
        self.end.next.is_some() && self.cohorts.with(&self.job.name, look) == Some(true)
    }

    /// Waits until not too many others are sent that nobody waits for; not for long, because
    /// their servers may be away, and this one's not. One that is to keep its lock closed has to
    /// come before the ttl does, and does not wait.
    async fn permit<'a>(&self, cohorts: &'a Cohorts) -> Option<SemaphorePermit<'a>> {
        if self.end.via != Some(ReleaseVia::Drop) || self.end.closed_until.is_some() {
            return None;
        }
        let Shared { clock, entropy, timing, .. } = &cohorts.shared;
        let now = clock.now();
        let left = self.end.until.saturating_since(now) / 2;
        // Those that are dropped together are not to be sent together in the end.
        let patience = timing.claim_window(self.end.ttl).min(left);
        let patience = patience.mul_f64(1.0 - entropy.fraction() / 2.0);
        select! {
            biased;
            permit = cohorts.dropping.acquire() => permit.ok(),
            () = clock.sleep_until(now + patience) => None,
        }
    }

    /// Chooses what is queued anew, for the first copy and all others.
    fn depart(&mut self) {
        let (id, first) = (self.end.id, self.end.first);
        let depart =
            |member: &mut Member, m: &Moment<'_>| (member.cohort.depart(m, id, first), nothing());
        self.end.next = self.cohorts.with(&self.job.name, depart).flatten();
    }

    /// Whether somebody still waits for the answer.
    fn is_wanted(&self) -> bool {
        let (id, first) = (self.end.id, self.end.first);
        self.cohorts.look(&self.job.name, |cohort| cohort.is_ending(id, first)) == Some(true)
    }

    /// Sends the release until a copy is answered, or none is under way any more.
    ///
    /// A copy that queues the next place is followed by another, as a heartbeat is, without waiting
    /// for its answer: one lost reply must not cost the place.
    async fn send(&self) -> Answer<ReleaseAnswer> {
        let shared = &self.cohorts.shared;
        let mut copies = vec![self.copy()];
        loop {
            let mut again = self.again_at().map(|at| shared.clock.sleep_until(at));
            let heard = poll_fn(|cx| self.heard(&mut copies, again.as_mut(), cx)).await;
            if let Some(answer) = heard {
                return answer;
            }
            // Where the next turn has begun by a push, nothing depends on the answer any more.
            if self.is_wanted() {
                self.repeats();
                copies.push(self.copy());
            }
        }
    }

    /// When the next copy is sent, if a place depends on it.
    fn again_at(&self) -> Option<Instant> {
        let Shared { clock, timing, rules, .. } = &self.cohorts.shared;
        let next = self.end.next.filter(|_| (rules.beats_on)(true))?;
        Some(clock.now() + Moment::SHORTEST.max(timing.claim_window(next.ttl) / 4))
    }

    /// The first answer to a copy, or the last failure; `None` when it is time to send another.
    fn heard(
        &self,
        copies: &mut Vec<Copy<'_>>,
        again: Option<&mut Sleep>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Answer<ReleaseAnswer>>> {
        let mut at = 0;
        while let Some(Copy { sent_at, answer }) = copies.get_mut(at) {
            let (sent_at, Poll::Ready(result)) = (*sent_at, answer.as_mut().poll(cx)) else {
                at += 1;
                continue;
            };
            if let Err(error) = &result {
                self.cohorts.shared.metrics.store().error(error.kind());
            }
            let is_failure = result.as_ref().is_err_and(|error| error.kind().is_transient());
            if !is_failure || copies.len() == 1 {
                return Poll::Ready(Some(Answer { sent_at, result }));
            }
            drop(copies.remove(at));
        }
        match again.map(|again| again.as_mut().poll(cx)) {
            _ if self.repeats_now(cx) => Poll::Ready(None),
            Some(Poll::Ready(())) => Poll::Ready(None),
            _ => Poll::Pending,
        }
    }

    /// The cohort is told that one more copy is sent.
    fn repeats(&self) {
        let (id, first) = (self.end.id, self.end.first);
        self.cohorts.with(&self.job.name, |member, _| {
            member.cohort.repeats(id, first);
            ((), nothing())
        });
    }

    fn copy(&self) -> Copy<'_> {
        let (shared, name, end) = (&self.cohorts.shared, &self.job.name, &self.end);
        let now = shared.clock.now();
        let next = end.next.map(|next| Next {
            id: next.id,
            ttl: next.ttl,
            watermark: shared.watermarks.of(now, name),
            label: &shared.label,
            heartbeat: next.heartbeat,
        });
        let time = match end.next {
            Some(next) => shared.place_deadline(next.ttl),
            None => shared.timing.command_deadline(end.ttl),
        };
        let deadline = end.until.min(now + time);
        let (id, fence) = (end.id, end.first);
        let keep = rest(end.closed_until, now);
        let answer = shared.store.release(Release { name, id, fence, keep, next, deadline });
        Copy { sent_at: now, answer }
    }
}

/// One copy of a release on its way.
struct Copy<'a> {
    sent_at: Instant,
    answer: StoreFuture<'a, ReleaseAnswer>,
}

impl Drop for EndingTurn {
    fn drop(&mut self) {
        // Without effect when it was answered.
        self.cohorts.turn_given_up(&self.job.name, &self.end);
        if self.end.via.is_some() {
            self.job.count(self.outcome);
        }
        // Last: what follows from the end is pending by now.
        self.cohorts.shared.reaper.retract(self.announced, &self.job, self.outcome);
    }
}

/// What a release came to that is not sent again.
fn outcome(result: &Result<ReleaseAnswer, StoreError>) -> ReleaseOutcome {
    match result {
        Ok(ReleaseAnswer::Gone) => ReleaseOutcome::Gone,
        Ok(ReleaseAnswer::Kept { .. }) => ReleaseOutcome::Kept,
        Ok(_) => ReleaseOutcome::Released,
        // The next turn has begun, so this one has ended.
        Err(error) if error.kind().is_transient() => ReleaseOutcome::Released,
        Err(_) => ReleaseOutcome::Unconfirmed,
    }
}

/// A renewal on its way that confirms a grant; dropped before, it counts as unanswered.
#[derive(Debug)]
pub(super) struct Confirming {
    cohorts: Arc<Cohorts>,
    grant: Option<Grant>,
}

impl Confirming {
    async fn drive(mut self) {
        let Some(grant) = self.grant.clone() else { return };
        let shared = &self.cohorts.shared;
        let sent_at = shared.clock.now();
        let (id, fence, ttl) = (grant.id(), grant.first(), grant.ttl());
        let renewal = [Renewal { name: grant.name().clone(), id, fence, ttl }];
        let deadline = sent_at + shared.place_deadline(ttl);
        let answers = shared.store.renew(&renewal, deadline).await;
        if let Err(error) = &answers {
            shared.metrics.store().error(error.kind());
        }
        let result = answers.map(|answers| answers.into_iter().next().unwrap_or(RenewAnswer::Gone));
        self.grant = None;
        self.settle(grant, Answer { sent_at, result });
    }

    fn settle(&self, grant: Grant, answer: Answer<RenewAnswer>) {
        let name = grant.name().clone();
        self.cohorts.with(&name, |member, m| ((), member.cohort.confirmed(m, grant, answer)));
    }
}

impl Drop for Confirming {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            let sent_at = self.cohorts.shared.clock.now();
            self.settle(grant, Answer { sent_at, result: Err(unanswered()) });
        }
    }
}

/// A command whose task ended before it was answered.
pub(super) fn unanswered() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "the task that awaited an answer has ended",
        "look for a panic, or a tokio runtime that was stopped",
    )
}

/// Nothing is to be done.
pub(super) fn nothing() -> Effects {
    Effects::default()
}
