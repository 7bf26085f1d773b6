use leasehold_core::{AcquisitionId, Fence};

use super::{event::Event, summary::Summary, violation::Violation};

/// Checks that the tokens which the storage accepted never fall, in the storage's own order, and
/// that the counter shows every increment.
pub(super) fn check(events: &[Event], summary: &mut Summary, violations: &mut Vec<Violation>) {
    let mut accepted = Vec::new();
    for event in events {
        match *event {
            Event::Wrote { fence, lease, order, accepted: true, .. } => {
                accepted.push((order, fence, lease));
            }
            Event::Wrote { accepted: false, .. } => summary.refused += 1,
            Event::Incremented { .. } => summary.increments += 1,
            _ => {}
        }
    }
    summary.accepted = accepted.len();
    // Stable: writes of the same order stay as they were recorded.
    accepted.sort_by_key(|(order, ..)| *order);
    check_writes(&accepted, violations);
    for event in events {
        if let Event::CounterRead { value } = *event
            && value != summary.increments
        {
            violations.push(Violation::LostUpdate { accepted: summary.increments, found: value });
        }
    }
}

fn check_writes(writes: &[(u64, Fence, AcquisitionId)], violations: &mut Vec<Violation>) {
    let mut highest: Option<(Fence, AcquisitionId)> = None;
    for &(order, fence, lease) in writes {
        match highest {
            Some((highest, _)) if fence < highest => {
                violations.push(Violation::StaleWrite { highest, accepted: fence, order });
            }
            Some((highest, first)) if fence == highest && lease != first => {
                violations.push(Violation::SharedWrite { fence, first, second: lease });
            }
            _ => highest = Some((fence, lease)),
        }
    }
}
