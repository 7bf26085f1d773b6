use std::sync::Arc;

use leasehold_core::{
    lease::Grant,
    store::{RenewAnswer, Renewal},
};

use crate::cohort::{Answer, Env, Outgoing};

use super::{
    core::Engine,
    pending::Cleanup,
    sending::{Job, Sender},
    table::Member,
};

impl Engine {
    /// Makes the releases and withdrawals of an event ready, which count as pending from then on.
    /// Not to be dropped inside of a lock.
    pub(super) fn prepare(&self, env: &mut Env<'_>, member: &mut Member) -> Vec<Cleanup> {
        let (mut jobs, effects) = (Vec::new(), &mut env.effects);
        let metrics = effects.metrics.as_ref().unwrap_or(&member.metrics);
        if let Some(Outgoing::Release(release)) = &effects.send {
            let job = Job::release(env.now, env.name, metrics, release, Some(Sender::Runtime));
            jobs.extend(self.arm(job, None));
        }
        for (id, ttl) in effects.withdraw.drain(..) {
            let job = Job::withdrawal(env.now, env.name, metrics, id, ttl);
            if let Some(cleanup) = self.arm(job, None) {
                member.cohort.on_withdrawal(id);
                jobs.push(cleanup);
            }
        }
        jobs
    }

    pub(super) fn send(&self, command: Outgoing) {
        let Some(engine) = self.me.upgrade() else { return };
        match command {
            Outgoing::Confirm(grant) => drop(self.handle().spawn(engine.confirm(*grant))),
            Outgoing::Heartbeat(beat) => drop(self.handle().spawn(engine.beat(vec![*beat]))),
            Outgoing::Release(_) => {}
        }
    }

    async fn confirm(self: Arc<Self>, grant: Grant) {
        let sent_at = self.clock.now();
        let (name, ttl) = (grant.name().clone(), grant.ttl());
        let renewal = [Renewal { name: name.clone(), id: grant.id(), fence: grant.first(), ttl }];
        let deadline = sent_at + self.place_deadline(ttl);
        let answers = self.counted(self.store.renew(sent_at, &renewal, deadline).await);
        let result = answers.map(|answers| answers.into_iter().next().unwrap_or(RenewAnswer::Gone));
        let answer = Answer { sent_at, result };
        self.with(&name, |member, env| member.cohort.on_confirmation(env, grant, answer));
    }
}
