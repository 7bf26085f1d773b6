use std::sync::Weak;

use leasehold_core::{
    AcquisitionId, Class, Instant, LockName,
    lease::{Grant, LossReason},
    metric::MessageOutcome,
    store::{Listener, Push},
};
use leasehold_watchdog::TurnKeeper;

use crate::queue::{NameState, TurnId};

use super::core::Engine;

impl Listener for Engine {
    fn proves(&self, name: &LockName, id: AcquisitionId) -> bool {
        self.numbers.proves(name, id)
    }

    // ADR 0026
    fn on_push(&self, push: Push) {
        match push {
            // Messages may have been lost: the places of all tasks that wait are asked for again, soon.
            Push::Listening => {
                for (name, mode) in self.names.names_of(NameState::expects_messages) {
                    self.with(&name, mode, |entry, env| entry.state.on_lost_messages(env));
                }
            }
            Push::Unexpected => on_dropped(self, MessageOutcome::Unexpected),
            Push::Unreadable => on_dropped(self, MessageOutcome::Unreadable),
            Push::Granted { ref name, id, .. }
            | Push::ForceReleased { ref name, id, .. }
            | Push::Wanted { ref name, id, .. }
                if !self.proves(name, id) =>
            {
                on_dropped(self, MessageOutcome::Unproven);
            }
            // The others come from somebody who has seen the acquisition in the store.
            Push::Granted { name, id, granted, heartbeat } => {
                self.metrics.store().message(MessageOutcome::Believed);
                // Also for a name that has no entry any more: the grant is to be withdrawn. The class of that
                // name is not known here.
                let metrics = self.metrics.class(&Class::default());
                let mode = self.mode_of(&name, id);
                let is_awaited = self.with_new(&name, mode, &metrics, |entry, env| {
                    let is_awaited = entry.state.awaits(id);
                    // Only then: a message may be old, or of somebody who watches the channel.
                    if is_awaited {
                        self.watermarks.saw(env.now, &name, granted.last);
                    }
                    entry.state.on_grant(env, id, &granted, heartbeat);
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
                self.with(&name, self.mode_of(&name, id), |entry, env| {
                    entry.state.on_wanted(env, TurnId { id, first });
                });
            }
        }
    }
}

/// A message is dropped before it changes anything.
fn on_dropped(engine: &Engine, outcome: MessageOutcome) {
    engine.metrics.store().message(outcome);
    let due = engine.reports.lock().dropped.add(engine.clock.now());
    if let Some(messages) = due {
        tracing::warn!(
            messages,
            last = ?outcome,
            "dropped messages on the channel of this runtime that the store has not sent; let nobody else \
             publish there, and use versions of Leasehold with one layout per namespace (see SECURITY.md)"
        );
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
        self.count(NameState::waiting)
    }

    fn idle(&self) -> usize {
        self.count(|state| usize::from(state.is_idle()))
    }
}

impl Keeper {
    /// The sum over the states of all names.
    fn count(&self, count: impl Fn(&NameState) -> usize) -> usize {
        let Some(engine) = self.0.upgrade() else { return 0 };
        let mut sum = 0;
        engine.names.each(|_, _, state| sum += count(state));
        sum
    }
}
