//! What the engine sends when a lease or an acquisition ends.

use std::sync::Arc;

use leasehold_core::{
    AcquisitionId, Instant, LockName, Ttl,
    lease::{HoldUpdate, LeaseState, LossReason},
    metric::{ClassMetrics, HoldEnd, ReleaseVia},
};
use leasehold_watchdog::{HeldLease, ReleasedLease};

use crate::{
    cohort::{AfterLease, Effects, Env, TurnId, TurnRelease},
    release::Belief,
};

use super::{
    core::Engine,
    pending::Cleanup,
    sending::{Command, Job, Sender},
    table::Member,
};

impl Engine {
    /// A lease is released. Returns its state until then, and who ends the turn on the server. That
    /// release is pending before the lease shows as over. If the cohort does not have the turn any
    /// more, the lease is lost, even if it is not marked as lost yet.
    pub(crate) fn release(
        self: &Arc<Self>,
        lease: &Arc<HeldLease>,
        end: HoldEnd,
    ) -> (LeaseState, AfterLease<Option<Cleanup>>) {
        let released = self.with(lease.name(), |member, env| {
            if !member.cohort.has_lease(lease.fence()) {
                return (None, Effects::default());
            }
            let released = lease.release(env.now);
            let (after, mut effects) = self.leave_turn(member, env, lease, &released, end);
            if effects.send.is_some() || !effects.withdraw.is_empty() {
                effects.metrics = Some(Arc::clone(lease.metrics()));
            }
            let leases = effects.leases.take();
            (Some((released, after, leases)), effects)
        });
        let (released, after, leases) = released.flatten().unwrap_or_else(|| {
            // Without effect if it is marked as lost already, for another reason.
            let _ = lease.lose(LossReason::Gone);
            (lease.release(self.clock.now()), AfterLease::WasOver, None)
        });
        if let Some(leases) = leases {
            lease.metrics().turn(leases);
        }
        let before = released.state;
        released.notify(end);
        (before, after)
    }

    /// The turn goes on without a lease that was released, if it was still on.
    fn leave_turn(
        self: &Arc<Self>,
        member: &mut Member,
        env: &Env<'_>,
        lease: &Arc<HeldLease>,
        released: &ReleasedLease,
        end: HoldEnd,
    ) -> (AfterLease<Option<Cleanup>>, Effects) {
        let (until, lease_until) = match released.state {
            LeaseState::Held { until } => (released.belief, until),
            LeaseState::Lost(reason) => {
                let (turn, closed_until) = (TurnId::of(lease.turn()), released.closed_until);
                let effects = member.cohort.on_lost(env, turn, reason, closed_until);
                return (AfterLease::WasOver, effects);
            }
            LeaseState::Released => return (AfterLease::WasOver, Effects::default()),
        };
        let (watch, closed_until) = (member.cohort.watch(), released.closed_until);
        let dropped = end == HoldEnd::Dropped;
        let (after, effects) =
            member.cohort.on_release(env, lease.fence(), until, closed_until, dropped);
        if let (Some(watch), None) = (watch, effects.forget) {
            // Inside the lock: the next lease of the turn is watched after this one.
            self.watches.vacate(watch);
        }
        let after = after.map(|release| {
            let overdue_at = env.now + self.timing.heartbeat_pause(lease.ttl());
            // That of the lease, which `max_hold` may end before its turn.
            let belief = Belief { until: lease_until, overdue_at };
            self.holders_release(env.now, lease, &release, belief)
        });
        (after, effects)
    }

    /// The withdrawal of an acquisition.
    pub(super) fn withdrawal(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        id: AcquisitionId,
        ttl: Ttl,
    ) -> Job {
        let (via, expires) = (Some(ReleaseVia::Withdraw), now + ttl.get());
        let (name, metrics) = (name.clone(), Arc::clone(metrics));
        Job { name, id, ttl, command: Command::Withdraw, expires, via, metrics }
    }

    /// A withdrawal was answered, or given up.
    pub(super) fn on_withdrawn(&self, name: &LockName, id: AcquisitionId) {
        self.with(name, |member, _| ((), member.cohort.on_withdrawn(id)));
    }

    /// The release of a turn.
    pub(super) fn release_job(
        now: Instant,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        release: &TurnRelease,
        sender: Option<Sender>,
    ) -> Job {
        let TurnRelease { turn: TurnId { id, first: fence }, ttl, closed_until, via } = *release;
        let (name, metrics, expires) = (name.clone(), Arc::clone(metrics), now + ttl.get());
        let command = Command::Release { fence, closed_until, sender };
        Job { name, id, ttl, command, expires, via, metrics }
    }

    /// The release of a turn that its last holder ends, and waits for.
    fn holders_release(
        self: &Arc<Self>,
        now: Instant,
        lease: &Arc<HeldLease>,
        release: &TurnRelease,
        belief: Belief,
    ) -> Option<Cleanup> {
        let release = TurnRelease { via: Some(ReleaseVia::Explicit), ..*release };
        let sender = Some(Sender::Holder(belief));
        let job = Self::release_job(now, lease.name(), lease.metrics(), &release, sender);
        Cleanup::armed(self, job, Some(Arc::clone(lease)))
    }

    /// Ends a lease on the server whose turn is over here.
    pub(crate) fn release_lost(&self, lease: &HeldLease, via: ReleaseVia) {
        let (turn, ttl) = (TurnId::of(lease.turn()), lease.ttl());
        let release = TurnRelease { turn, ttl, closed_until: lease.closed_until(), via: Some(via) };
        let now = self.clock.now();
        let job = Self::release_job(now, lease.name(), lease.metrics(), &release, None);
        drop(self.me.upgrade().and_then(|engine| Cleanup::armed(&engine, job, None)));
    }

    /// Sends the count of holds while the lease is believed. It extends the lease, so never after a
    /// loss.
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
