//! Faults in the middle of a turn of several tasks.

use std::thread;

use leasehold_testkit::{LockText, RedisServer};

use super::scene::LEASE;
use crate::support::crew::{Crew, Finished, Plan};

/// Four tasks in each process, so that a turn is handed on.
pub(super) const PROTECTED: Plan = Plan { tasks: 4, ..Plan::PROTECTED };
pub(super) const UNGATED: Plan = Plan { tasks: 4, ..Plan::UNGATED };

/// Halts a holder of each process within a turn, and strikes; then others write, and it goes on.
/// Returns how many tokens were left of those turns.
pub(super) fn strike(crew: &mut Crew, plan: &Plan, server: &RedisServer, fault: &dyn Fn()) -> u64 {
    let mut left = 0;
    for index in 0..plan.processes {
        crew.work(20);
        let read = crew.halt(index);
        let text = LockText::of(server, LEASE);
        left += text.last() - text.lease().fence;
        fault();
        crew.until_above(read);
        if index == 0 {
            // Far longer than it takes until the holder is told.
            thread::sleep(plan.ttl);
        }
        crew.resume(index);
    }
    left
}

/// Checks a history in which turns were lost unseen.
pub(super) fn right(finished: &Finished) -> String {
    let summary = finished.history.check_with_lost_turns();
    let summary = summary.unwrap_or_else(|found| panic!("{found:#?}"));
    assert!(summary.refused > 0 && summary.lost > 0, "{summary:?}");
    let (increments, refused, lost) = (summary.increments, summary.refused, summary.lost);
    format!(
        "{increments} increments, none lost; {refused} stale writes refused; {lost} losses reported"
    )
}
