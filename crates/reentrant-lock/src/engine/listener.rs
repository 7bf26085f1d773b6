use std::sync::Weak;

use leasehold_core::{
    AcquisitionId, Class, FenceToken, Instant, LockName,
    lease::{Grant, LossReason},
    metric::MessageOutcome,
    store::{Listener, Push},
};
use leasehold_watchdog::TurnKeeper;

use crate::cohort::{Cohort, TurnId};

use super::core::Engine;

impl Listener for Engine {
    fn proves(&self, name: &LockName, id: AcquisitionId) -> bool {
        self.numbers.proves(name, id)
    }

    // ADR 0026
    fn on_push(&self, push: Push) {
        match push {
            Push::Listening => self.on_lost_messages(),
            Push::Unexpected => self.on_dropped(MessageOutcome::Unexpected),
            Push::Unreadable => self.on_dropped(MessageOutcome::Unreadable),
            Push::Granted { ref name, id, .. }
            | Push::ForceReleased { ref name, id, .. }
            | Push::Wanted { ref name, id, .. }
                if !self.proves(name, id) =>
            {
                self.on_dropped(MessageOutcome::Unproven);
            }
            // The others come from somebody who has seen the acquisition in the store.
            Push::Granted { name, id, granted, heartbeat } => {
                self.metrics.store().message(MessageOutcome::Believed);
                let metrics = self.metrics.class(&Class::default());
                let is_awaited = self.with_new(&name, &metrics, |member, env| {
                    let is_awaited = member.cohort.awaits(id);
                    // Only then: a message may be old, or of somebody who watches the channel.
                    if is_awaited {
                        self.watermarks.saw(env.now, &name, granted.last);
                    }
                    member.cohort.on_grant(env, id, &granted, heartbeat);
                    is_awaited
                });
                if is_awaited == Some(true) {
                    self.report_regression(&name, &granted);
                }
            }
            Push::ForceReleased { name, id, fence } => {
                self.metrics.store().message(MessageOutcome::Believed);
                self.on_force_released(&name, id, fence);
            }
            Push::Wanted { name, id, fence: first } => {
                self.metrics.store().message(MessageOutcome::Believed);
                self.with(&name, |member, env| {
                    member.cohort.on_wanted(env, TurnId { id, first });
                });
            }
        }
    }
}

impl Engine {
    /// A message is dropped before it changes anything.
    fn on_dropped(&self, outcome: MessageOutcome) {
        self.metrics.store().message(outcome);
        let due = self.dropped.lock().add(self.clock.now());
        if let Some(messages) = due {
            tracing::warn!(
                messages,
                last = ?outcome,
                "dropped messages on the channel of this runtime that the store has not sent; let nobody else \
                 publish there, and use one version of Leasehold per namespace (see SECURITY.md)"
            );
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
    pub(crate) fn on_force_released(&self, name: &LockName, id: AcquisitionId, first: FenceToken) {
        // Also while no task holds a lease of it: the task that is offered one is not to take it.
        let turn = TurnId { id, first };
        self.with(name, |member, env| member.cohort.on_force_released(env, turn));
    }

    /// Messages may have been lost: the places of all tasks that wait are asked for again, soon.
    fn on_lost_messages(&self) {
        for name in self.names_of(Cohort::expects_messages) {
            self.with(&name, |member, env| member.cohort.on_lost_messages(env));
        }
    }
}
