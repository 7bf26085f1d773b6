use std::sync::Weak;

use leasehold_core::{
    AcquisitionId, Class, FenceToken, Instant, LockName,
    lease::{Grant, LossReason},
    store::{Listener, Push},
};
use leasehold_watchdog::TurnKeeper;

use crate::cohort::{Cohort, TurnId};

use super::core::Engine;

impl Listener for Engine {
    fn on_push(&self, push: Push) {
        match push {
            Push::Granted { name, id, granted, heartbeat } => {
                self.saw(self.clock.now(), &name, &granted);
                let metrics = self.metrics.class(&Class::default());
                self.with_new(&name, &metrics, |member, env| {
                    member.cohort.on_grant(env, id, &granted, heartbeat);
                });
            }
            Push::ForceReleased { name, id, fence } => self.on_gone(&name, id, fence),
            Push::Wanted { name, id, fence: first } => {
                self.with(&name, |member, env| {
                    member.cohort.on_wanted(env, TurnId { id, first });
                });
            }
            Push::Listening => self.on_lost_messages(),
        }
    }
}

/// Passes losses from the watchdog to the engine; it does not keep the engine alive.
#[derive(Debug)]
pub(super) struct Keeper(pub(super) Weak<Engine>);

impl TurnKeeper for Keeper {
    fn lost(&self, turn: &Grant, reason: LossReason, closed_until: Option<Instant>) {
        if let Some(engine) = self.0.upgrade() {
            engine.on_lost(turn, reason, closed_until);
        }
    }

    fn waiting(&self) -> usize {
        self.0.upgrade().map_or(0, |engine| engine.count().1)
    }

    fn idle(&self) -> usize {
        self.0.upgrade().map_or(0, |engine| engine.count().2)
    }
}

impl Engine {
    /// A turn is lost, whose lease is marked as lost already.
    pub(crate) fn on_lost(&self, turn: &Grant, reason: LossReason, closed_until: Option<Instant>) {
        self.with(turn.name(), |member, env| {
            member.cohort.on_lost(env, TurnId::of(turn), reason, closed_until);
        });
    }

    /// A turn was ended by force: its holder need not wait for a renewal to learn it.
    pub(crate) fn on_gone(&self, name: &LockName, id: AcquisitionId, first: FenceToken) {
        // Also while no task holds a lease of it: the task that is offered one is not to take it.
        let turn = TurnId { id, first };
        self.with(name, |member, env| member.cohort.on_gone(env, turn));
    }

    /// Messages may have been lost: the places of all tasks that wait are asked for again, soon.
    fn on_lost_messages(&self) {
        for name in self.names_of(Cohort::expects_messages) {
            self.with(&name, |member, env| member.cohort.on_lost_messages(env));
        }
    }
}
