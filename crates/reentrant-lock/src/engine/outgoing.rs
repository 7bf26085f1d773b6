//! What the engine sends when a lease or an acquisition ends.

use std::sync::Arc;

use leasehold_core::{
    AcquisitionId, Instant, LockName, Terms, Ttl,
    lease::{Grant, HoldUpdate, LeaseState, LossReason},
    metric::{ClassMetrics, HoldEnd, ReleaseVia},
    store::{Renewal, Renewals, only},
};
use leasehold_watchdog::{HeldLease, ReleasedLease};

use crate::{
    cohort::{AfterLease, Answer, Cohort, Env, Outgoing, TurnId, TurnRelease},
    release::Belief,
};

use super::{
    core::Engine,
    pending::Cleanup,
    sending::{Command, Job, Sender},
    table::Member,
};

impl Engine {
    /// A lease is released. Returns its state until then, who ends the turn on the server, and the
    /// release that its holder sends, which is pending before the lease shows as over. If the
    /// cohort does not have the turn any more, the lease is lost.
    pub(crate) fn release(
        &self,
        lease: &Arc<HeldLease>,
        end: HoldEnd,
    ) -> (LeaseState, AfterLease, Option<Cleanup>) {
        let released = self.with(lease.name(), |member, env| {
            if !member.cohort.has_lease(lease.fence()) {
                return None;
            }
            env.effects.metrics = Some(Arc::clone(lease.metrics()));
            let released = lease.release(env.now);
            let (after, rest) = self.leave_turn(&mut member.cohort, env, lease, &released, end);
            Some((released, after, rest))
        });
        let (released, after, rest) = released.flatten().unwrap_or_else(|| {
            // Whatever else ends a turn marks its lease as lost first: then this has no effect.
            let _ = lease.lose(LossReason::ForceReleased);
            (lease.release(self.clock.now()), AfterLease::WasOver, None)
        });
        let before = released.state;
        released.notify(end);
        (before, after, rest)
    }

    /// The turn goes on without a lease that was released, if it was still on.
    fn leave_turn(
        &self,
        cohort: &mut Cohort,
        env: &mut Env<'_>,
        lease: &Arc<HeldLease>,
        released: &ReleasedLease,
        end: HoldEnd,
    ) -> (AfterLease, Option<Cleanup>) {
        let closed_until = released.closed_until;
        let lease_until = match released.state {
            LeaseState::Held { until } => until,
            LeaseState::Lost(reason) => {
                cohort.on_lost(env, TurnId::of(lease.turn()), reason, closed_until);
                return (AfterLease::WasOver, None);
            }
            LeaseState::Released => return (AfterLease::WasOver, None),
        };
        let (watch, until) = (cohort.watch(), released.belief);
        let dropped = end == HoldEnd::Dropped;
        let after = cohort.on_release(env, lease.fence(), until, closed_until, dropped);
        if let (Some(watch), None) = (watch, env.effects.forget) {
            // Inside the lock: the next lease of the turn is watched after this one.
            self.watches.vacate(watch);
        }
        let AfterLease::Ends(release) = after else { return (after, None) };
        // That of the lease, which `max_hold` may end before its turn.
        let overdue_at = env.now + self.timing.heartbeat_pause(lease.ttl());
        let sender = Sender::Holder(Belief { until: lease_until, overdue_at });
        let job = Job::release(env.now, lease.name(), lease.metrics(), &release, Some(sender));
        (after, self.arm(job, Some(Arc::clone(lease))))
    }

    /// Ends a lease on the server whose turn is over here.
    pub(crate) fn release_lost(&self, lease: &HeldLease, via: ReleaseVia) {
        let (turn, ttl) = (TurnId::of(lease.turn()), lease.ttl());
        let release = TurnRelease { turn, ttl, closed_until: lease.closed_until(), via: Some(via) };
        let now = self.clock.now();
        drop(self.arm(Job::release(now, lease.name(), lease.metrics(), &release, None), None));
    }

    /// Sends the count of holds. It extends the lease, so never after a loss.
    pub(crate) fn hold(&self, lease: &Arc<HeldLease>, update: HoldUpdate) -> Option<Cleanup> {
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
        self.arm(job, None)
    }

    /// Makes the releases and withdrawals of an event ready. Not to be dropped inside of a lock.
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
            Outgoing::Confirm(grant) => self.spawn(engine.confirm(*grant)),
            Outgoing::Heartbeat(beat) => self.spawn(engine.beat(vec![*beat])),
            Outgoing::Release(_) => {}
        }
    }

    async fn confirm(self: Arc<Self>, grant: Grant) {
        let sent_at = self.clock.now();
        let (name, Terms { ttl, acks }) = (grant.name().clone(), grant.terms());
        let (id, fence) = (grant.id(), grant.first());
        let batch = vec![Renewal { name: name.clone(), id, fence, ttl, acks }];
        let deadline = sent_at + self.place_deadline(ttl);
        let answers = self.store.ask(sent_at, Renewals { batch }, deadline).await;
        let answer = Answer { sent_at, result: self.counted(answers.and_then(only)) };
        self.with(&name, |member, env| member.cohort.on_confirmation(env, grant, answer));
    }
}

impl Job {
    pub(super) fn withdrawal(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        id: AcquisitionId,
        ttl: Ttl,
    ) -> Self {
        let (via, expires) = (Some(ReleaseVia::Withdraw), now + ttl.get());
        let (name, metrics) = (name.clone(), Arc::clone(metrics));
        Self { name, id, ttl, command: Command::Withdraw, expires, via, metrics }
    }

    pub(super) fn release(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        release: &TurnRelease,
        sender: Option<Sender>,
    ) -> Self {
        let TurnRelease { turn: TurnId { id, first: fence }, ttl, closed_until, via } = *release;
        let (name, metrics, expires) = (name.clone(), Arc::clone(metrics), now + ttl.get());
        let command = Command::Release { fence, closed_until, sender };
        Self { name, id, ttl, command, expires, via, metrics }
    }
}
