use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::{AcquisitionId, Fence, Instant};

use super::{blocks::Blocks, deed::Deed, event::Event, violation::Violation};

/// Checks that nobody who could still believe was told that its lease is gone, unless something had
/// ended it on the server.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) {
    let mut ended: BTreeSet<Fence> = BTreeSet::new();
    let mut withdrawn: BTreeSet<AcquisitionId> = BTreeSet::new();
    let mut grants: BTreeMap<AcquisitionId, Fence> = BTreeMap::new();
    let mut ends: BTreeMap<AcquisitionId, Instant> = BTreeMap::new();
    for event in events {
        match *event {
            Event::Spied { deed: Deed::Ended { first, .. } | Deed::Kept { first, .. }, .. } => {
                ended.insert(first);
            }
            Event::Spied { deed: Deed::Withdrawn { id }, .. } => {
                withdrawn.insert(id);
            }
            Event::Granted { lease, fence, .. } => {
                grants.insert(lease, fence);
            }
            Event::BelievedUntil { lease, until } => {
                let latest = ends.entry(lease).or_insert(until);
                *latest = until.max(*latest);
            }
            Event::ToldGone { lease, at } => {
                let block = grants.get(&lease).and_then(|fence| blocks.of(lease.runtime(), *fence));
                let has_ended = block.is_none_or(|block| {
                    block.is_void(at)
                        || ended.contains(&block.first)
                        || withdrawn.contains(&block.id)
                });
                let believes = ends.get(&lease).is_some_and(|until| at < *until);
                if believes && !has_ended {
                    violations.push(Violation::LostForNothing { lease, at });
                }
            }
            _ => {}
        }
    }
}
