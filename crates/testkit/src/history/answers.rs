use std::collections::BTreeSet;

use leasehold_core::{AcquisitionId, Fence, seam::Part};

use super::{deed::Deed, event::Event, violation::Violation};

/// Checks the server's answers against each other: a command changes the lease that it names and
/// no other, and what was withdrawn is neither queued nor granted again.
pub(super) fn check(events: &[Event], violations: &mut Vec<Violation>) {
    let mut stands: Option<(AcquisitionId, Fence)> = None;
    let mut dead: BTreeSet<AcquisitionId> = BTreeSet::new();
    for event in events {
        let Event::Spied { at, deed } = *event else { continue };
        match deed {
            Deed::Minted { id, first, .. } => {
                if dead.contains(&id) {
                    violations.push(Violation::DeadServed { id, at });
                }
                stands = Some((id, first));
            }
            Deed::Queued { id, .. } if dead.contains(&id) => {
                violations.push(Violation::DeadServed { id, at });
            }
            Deed::Extended { id, first } | Deed::Ended { id, first }
                if stands != Some((id, first)) =>
            {
                violations.push(Violation::WrongLease { id, first, at });
            }
            Deed::Ended { .. } | Deed::PartLost { part: Part::Lock } => stands = None,
            Deed::Withdrawn { id } => {
                dead.insert(id);
            }
            Deed::TookOver { stands: there, is_behind, .. } => {
                stands = there;
                if is_behind {
                    dead.clear();
                }
            }
            Deed::Forgot => {
                stands = None;
                dead.clear();
            }
            Deed::PartLost { part: Part::Marks } => dead.clear(),
            _ => {}
        }
    }
}
