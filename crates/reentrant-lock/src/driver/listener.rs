use leasehold_core::{
    AcquisitionId, Class, FenceToken, Instant, LockName,
    lease::{Grant, LossReason},
    store::{Granted, Listener, Push},
};
use leasehold_watchdog::TurnKeeper;

use crate::cohort::Cohort;

use super::cohorts::Cohorts;

impl Listener for Cohorts {
    fn on_push(&self, push: Push) {
        match push {
            Push::Granted { name, id, granted, heartbeat } => {
                self.saw(&name, &granted);
                let metrics = self.shared.metrics.class(&Class::default());
                // Also where nobody waits any more: a grant that finds no task is taken back.
                self.with_new(&name, &metrics, |member, m| {
                    ((), member.cohort.pushed(m, id, &granted, heartbeat))
                });
            }
            Push::ForceReleased { name, id, fence } => self.force_released(&name, id, fence),
            Push::Listening => self.missed_something(),
        }
    }
}

impl TurnKeeper for Cohorts {
    fn lost(&self, turn: &Grant, reason: LossReason, closed_until: Option<Instant>) {
        self.with(turn.name(), |member, m| {
            ((), member.cohort.turn_lost(m, turn, reason, closed_until))
        });
    }

    fn waiting(&self) -> usize {
        self.count().1
    }
}

impl Cohorts {
    /// Somebody ended a turn by force: its holder need not wait for a renewal to learn it.
    pub(crate) fn force_released(&self, name: &LockName, id: AcquisitionId, first: FenceToken) {
        // Also while nobody holds a lease of it: the task that is offered one is not to take it.
        self.with(name, |member, m| ((), member.cohort.turn_gone(m, id, first)));
    }

    /// Whoever waits asks again, soon.
    fn missed_something(&self) {
        for name in self.names_of(Cohort::expects_messages) {
            self.with(&name, |member, m| {
                member.cohort.missed_something(m);
                ((), super::commands::nothing())
            });
        }
    }

    /// Tokens of a name were granted, whether the grant counts or not.
    pub(crate) fn saw(&self, name: &LockName, granted: &Granted) {
        let shared = &self.shared;
        shared.watermarks.saw(shared.clock.now(), name, granted.last);
        if granted.regressed {
            shared.metrics.store().regression();
            shared.watches.common().outages().regressed(shared.clock.now(), name, granted.first);
        }
    }
}
