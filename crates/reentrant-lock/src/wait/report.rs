use std::time::Duration;

use leasehold_core::Instant;

use crate::{
    blocked::{Report, next_report},
    driver::InLine,
    engine::Engine,
    error::QueuePosition,
};

use super::call::Wait;

impl Wait {
    /// When to report a wait that lasts.
    pub(super) fn next_report(&self, started: Instant) -> Instant {
        let Engine { clock, timing, .. } = &*self.engine;
        next_report(started, clock.now(), timing.blocked_after)
    }

    /// Reports a call that has waited for long, unless enough was reported.
    pub(super) fn report(&self, in_line: &InLine, waited: Duration, now: Instant) {
        let Self { engine, name, wish, .. } = self;
        let Some(left_out) = engine.cohorts.take_report(name, now) else { return };
        let (tasks, runtimes) = in_line.position();
        let (lock, class) = (name.clone(), wish.metrics.class().clone());
        let position = QueuePosition { runtimes, tasks };
        let report = Report { lock, class, waited, position, left_out };
        match engine.cohorts.held_here(name) {
            Some(lease) => report.tell_lease(&lease, engine.label.to_string(), now),
            None => engine.cohorts.report_after_a_look(report),
        }
    }
}
