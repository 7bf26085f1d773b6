use std::sync::Arc;

use leasehold_core::{
    Instant, LockName, StoreError, StoreErrorKind,
    lease::Grant,
    metric::ClassMetrics,
    store::{RenewAnswer, Renewal},
};
use tokio::runtime::Handle;

use crate::cohort::{self, Answer, Cohort, Effects};

use super::{core::Engine, heartbeats::Beats, pending::Cleanup, sending::Sender};

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
    /// Makes the commands of an event ready. Its releases and withdrawals count as pending from
    /// then on.
    pub(super) fn prepare(
        &self,
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        cohort: &mut Cohort,
        effects: &mut Effects,
    ) -> Vec<Outgoing> {
        let mut outgoing = Vec::new();
        let Some(engine) = self.me.upgrade() else { return outgoing };
        match effects.send.take() {
            Some(cohort::Outgoing::Release(via)) => {
                let job = cohort.release_command(via).map(|release| {
                    Self::release_job(now, name, metrics, &release, Some(Sender::Runtime))
                });
                let armed = job.and_then(|job| Cleanup::armed(&engine, job, None));
                outgoing.extend(armed.map(Outgoing::Job));
            }
            Some(cohort::Outgoing::Confirm(grant)) => {
                let (engine, grant) = (Arc::clone(&engine), Some(*grant));
                outgoing.push(Outgoing::Confirm(Confirming { engine, grant }));
            }
            Some(cohort::Outgoing::Heartbeat(beat)) => {
                let beats = Beats::new(Arc::clone(&engine), vec![*beat]);
                outgoing.push(Outgoing::Heartbeats(beats));
            }
            None => {}
        }
        for (id, ttl) in effects.withdraw.drain(..) {
            let job = Self::withdrawal(now, name, metrics, id, ttl);
            if let Some(cleanup) = Cleanup::armed(&engine, job, None) {
                cohort.on_withdrawal(id);
                outgoing.push(Outgoing::Job(cleanup));
            }
        }
        outgoing
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
        let answers = engine.counted(engine.store.renew(sent_at, &renewal, deadline).await);
        let result = answers.map(|answers| answers.into_iter().next().unwrap_or(RenewAnswer::Gone));
        self.grant = None;
        self.settle(grant, Answer { sent_at, result });
    }

    fn settle(&self, grant: Grant, answer: Answer<RenewAnswer>) {
        let name = grant.name().clone();
        let settle =
            |cohort: &mut Cohort, env: &cohort::Env<'_>| cohort.on_confirmation(env, grant, answer);
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
