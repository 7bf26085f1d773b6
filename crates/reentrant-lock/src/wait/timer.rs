use std::task::Context;

use leasehold_core::{Instant, Sleep};

use crate::engine::Engine;

/// One timer for all that a wait is woken for, as many tasks may wait; set anew when the time changes.
#[derive(Default)]
pub(super) struct Timer(Option<(Instant, Sleep)>);

impl Timer {
    /// Whether it is `at`; the task is woken by then.
    pub(super) fn is_over(&mut self, engine: &Engine, at: Instant, cx: &mut Context<'_>) -> bool {
        let (_, sleep) = match &mut self.0 {
            Some(timer) if timer.0 == at => timer,
            other => other.insert((at, engine.clock.sleep_until(at))),
        };
        sleep.as_mut().poll(cx).is_ready()
    }
}

/// The earlier of two times, of which the first may never come.
pub(super) fn earlier(one: Option<Instant>, other: Instant) -> Instant {
    one.map_or(other, |one| one.min(other))
}
