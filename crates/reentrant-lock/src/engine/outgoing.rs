use std::{sync::Arc, task::Waker};

use leasehold_core::{
    AcquisitionId, LockName, StoreError, StoreErrorKind, Ttl,
    lease::{Grant, HoldUpdate, LeaseState},
    metric::{ClassMetrics, ReleaseVia},
    store::{ReleaseAnswer, RenewAnswer, Renewal},
};
use leasehold_watchdog::HeldLease;
use tokio::runtime::Handle;

use crate::{
    cohort::{self, Answer, Effects, NextPlace, NextTurn, TurnId, TurnRelease},
    release::Belief,
};

use super::{
    cleanup::Cleanup,
    core::Engine,
    heartbeats::Beats,
    sending::{Command, Job, Sender},
};

/// A command that the runtime sends; not to be dropped inside of a lock.
pub(super) enum Outgoing {
    /// A release or a withdrawal, until the store has answered or has forgotten it by itself.
    Job(Cleanup),
    /// A renewal that confirms a grant.
    Confirm(Confirming),
    /// Heartbeats.
    Heartbeats(Beats),
}

impl Outgoing {
    pub(super) fn spawn(self, handle: &Handle) {
        match self {
            // It goes on in the runtime.
            Self::Job(cleanup) => drop(cleanup),
            Self::Confirm(confirming) => drop(handle.spawn(confirming.run())),
            Self::Heartbeats(beats) => drop(handle.spawn(beats.run())),
        }
    }
}

impl Engine {
    /// Makes the commands of an event ready; from then on they count as pending.
    pub(super) fn prepare(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        effects: &mut Effects,
    ) -> Vec<Outgoing> {
        let mut outgoing = Vec::new();
        if effects.send.is_none() && effects.withdraw.is_empty() {
            return outgoing;
        }
        let Some(engine) = self.me.upgrade() else { return outgoing };
        match effects.send.take() {
            Some(cohort::Outgoing::Release(release)) => {
                let job = self.release_job(name, metrics, &release, Sender::Runtime);
                outgoing.extend(Cleanup::armed(&engine, job, None).map(Outgoing::Job));
            }
            Some(cohort::Outgoing::Confirm(grant)) => {
                let (engine, grant) = (Arc::clone(&engine), Some(grant));
                outgoing.push(Outgoing::Confirm(Confirming { engine, grant }));
            }
            Some(cohort::Outgoing::Heartbeat(beat)) => {
                let beats = Beats::new(Arc::clone(&engine), vec![beat]);
                outgoing.push(Outgoing::Heartbeats(beats));
            }
            None => {}
        }
        for (id, ttl) in effects.withdraw.drain(..) {
            let job = self.withdrawal(name, metrics, id, ttl);
            outgoing.extend(Cleanup::armed(&engine, job, None).map(Outgoing::Job));
        }
        outgoing
    }

    fn withdrawal(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        id: AcquisitionId,
        ttl: Ttl,
    ) -> Job {
        Job {
            name: name.clone(),
            id,
            ttl,
            command: Command::Withdraw,
            expires: self.clock.now() + ttl.get(),
            via: Some(ReleaseVia::Withdraw),
            metrics: Arc::clone(metrics),
        }
    }

    fn release_job(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        release: &TurnRelease,
        sender: Sender,
    ) -> Job {
        let TurnRelease { turn, ttl, closed_until, via } = *release;
        Job {
            name: name.clone(),
            id: turn.id,
            ttl,
            command: Command::Release { fence: turn.first, closed_until, sender: Some(sender) },
            expires: self.clock.now() + ttl.get(),
            via,
            metrics: Arc::clone(metrics),
        }
    }

    /// The release of a turn that its last holder ends, and waits for.
    pub(super) fn holders_release(
        &self,
        lease: &Arc<HeldLease>,
        release: &TurnRelease,
        belief: Belief,
    ) -> Option<Cleanup> {
        let release = TurnRelease { via: Some(ReleaseVia::Explicit), ..*release };
        let sender = Sender::Holder(belief);
        let job = self.release_job(lease.name(), lease.metrics(), &release, sender);
        Cleanup::armed(&self.me.upgrade()?, job, Some(Arc::clone(lease)))
    }

    /// Ends a lease on the server whose turn is over here.
    pub(crate) fn release_lost(&self, lease: &HeldLease, via: ReleaseVia) {
        let (turn, ttl) = (lease.turn(), lease.ttl());
        let (fence, closed_until) = (turn.first(), lease.closed_until());
        let job = Job {
            name: turn.name().clone(),
            id: turn.id(),
            ttl,
            command: Command::Release { fence, closed_until, sender: None },
            expires: self.clock.now() + ttl.get(),
            via: Some(via),
            metrics: Arc::clone(lease.metrics()),
        };
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

    /// A copy of a release is about to be sent; with what is queued in the same step.
    ///
    /// # Errors
    ///
    /// [`NextTurn`] when nothing depends on the release any more.
    pub(crate) fn on_release_send(
        &self,
        name: &LockName,
        turn: TurnId,
    ) -> Result<Option<NextPlace>, NextTurn> {
        let send = self.with(name, |member, env| {
            (member.cohort.on_release_send(env, turn), Effects::default())
        });
        send.unwrap_or(Err(NextTurn))
    }

    /// A copy of a release was answered, or failed; whether another is to be sent.
    pub(crate) fn on_release_reply(
        &self,
        name: &LockName,
        turn: TurnId,
        answer: Answer<ReleaseAnswer>,
    ) -> bool {
        if let Ok(ReleaseAnswer::NextGranted(granted)) = &answer.result {
            self.saw(name, granted);
        }
        let reply =
            self.with(name, |member, env| member.cohort.on_release_reply(env, turn, answer));
        reply.unwrap_or(false)
    }

    /// A holder waits no longer for the answer to its release.
    pub(crate) fn on_release_left(&self, name: &LockName, turn: TurnId) {
        self.with(name, |member, _| {
            member.cohort.on_release_left(turn);
            ((), Effects::default())
        });
    }

    /// A release was never answered, and is not sent any more.
    pub(crate) fn on_release_given_up(&self, name: &LockName, turn: TurnId) {
        self.with(name, |member, env| ((), member.cohort.on_release_given_up(env, turn)));
    }

    /// Whether another copy of a release is to be sent at once; otherwise `waker` is woken when it is.
    pub(crate) fn has_lost_messages(&self, name: &LockName, turn: TurnId, waker: &Waker) -> bool {
        let look = self.with(name, |member, _| {
            (member.cohort.has_lost_messages(turn, waker), Effects::default())
        });
        look.unwrap_or(false)
    }
}

/// A renewal in flight that confirms a grant; dropped before, it counts as unanswered.
pub(super) struct Confirming {
    engine: Arc<Engine>,
    grant: Option<Grant>,
}

impl Confirming {
    async fn run(mut self) {
        let Some(grant) = self.grant.clone() else { return };
        let engine = &self.engine;
        let sent_at = engine.clock.now();
        let (id, fence, ttl) = (grant.id(), grant.first(), grant.ttl());
        let renewal = [Renewal { name: grant.name().clone(), id, fence, ttl }];
        let deadline = sent_at + engine.place_deadline(ttl);
        let answers = engine.counted(engine.store.renew(&renewal, deadline).await);
        let result = answers.map(|answers| answers.into_iter().next().unwrap_or(RenewAnswer::Gone));
        self.grant = None;
        self.settle(grant, Answer { sent_at, result });
    }

    fn settle(&self, grant: Grant, answer: Answer<RenewAnswer>) {
        let name = grant.name().clone();
        let settle = |cohort: &mut cohort::Cohort, env: &cohort::Env<'_>| {
            cohort.on_confirmation(env, grant, answer)
        };
        self.engine.with(&name, |member, env| ((), settle(&mut member.cohort, env)));
    }
}

impl Drop for Confirming {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            let sent_at = self.engine.clock.now();
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
