use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{AcquisitionId, Fence, Instant, seam::Part};

use super::{blocks::Blocks, deed::Deed, event::Event, violation::Violation};

/// Until when locks are to stay closed, by the first token of the turn, and why.
#[derive(Debug, Default)]
struct Doors {
    /// As the holders of leases asked: neither another task nor a release may open it before.
    asked: BTreeMap<Fence, (AcquisitionId, Instant)>,
    /// As the server answered: nobody may be granted the lock before.
    kept: Option<(AcquisitionId, Instant)>,
    count: usize,
}

/// Checks that a lock that is to stay closed is opened by nobody before its time, but by an
/// operator or a loss of data; counts the locks that the server kept closed.
///
/// A lease that ends with its ttl opens the lock like that of a holder that crashed.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) -> usize {
    let (mut doors, mut turn_of) = (Doors::default(), BTreeMap::new());
    for event in events {
        match *event {
            Event::Granted { lease, fence, granted_at: at, .. } => {
                let Some(block) = blocks.of(lease.runtime(), fence) else { continue };
                if turn_of.insert(lease, block.first).is_none() {
                    violations.extend(doors.handed_on(block.first, lease, at));
                }
            }
            Event::ClosedUntil { lease, until, .. } => {
                if let Some(first) = turn_of.get(&lease) {
                    let (by, latest) = doors.asked.entry(*first).or_insert((lease, until));
                    if until > *latest {
                        (*by, *latest) = (lease, until);
                    }
                }
            }
            Event::Spied { at, deed } => violations.extend(doors.does(at, deed)),
            _ => {}
        }
    }
    doors.count
}

/// The times in which locks are held or stay closed, as their holders asked.
pub(super) fn times(events: &[Event]) -> impl Iterator<Item = (Instant, Instant)> {
    events.iter().filter_map(|event| match *event {
        Event::ClosedUntil { from, until, .. } => Some((from, until)),
        _ => None,
    })
}

impl Doors {
    /// A task has a lease of a turn.
    fn handed_on(&self, first: Fence, lease: AcquisitionId, at: Instant) -> Option<Violation> {
        let (id, until) = *self.asked.get(&first)?;
        (id != lease && at < until).then_some(Violation::OpenedEarly { id, at, until })
    }

    fn does(&mut self, at: Instant, deed: Deed) -> Option<Violation> {
        match deed {
            Deed::Ended { first, .. } => {
                let (id, until) = self.asked.remove(&first)?;
                return (at < until).then_some(Violation::OpenedEarly { id, at, until });
            }
            Deed::Kept { id, first, until } => {
                self.count += 1;
                self.kept = Some((id, until));
                // The server's clock may run faster than the holder's, by a hundredth at most.
                let (_, asked) = self.asked.get(&first)?;
                let slack = asked.saturating_since(at) / 50;
                return (until + slack < *asked).then_some(Violation::OpenedEarly {
                    id,
                    at: until,
                    until: *asked,
                });
            }
            Deed::Minted { .. } => {
                let (id, until) = self.kept.take()?;
                // The server counts whole microseconds.
                let is_early = at + Duration::from_micros(1) <= until;
                return is_early.then_some(Violation::OpenedEarly { id, at, until });
            }
            Deed::Forced { first } => {
                self.asked.remove(&first);
                self.kept = None;
            }
            Deed::Forgot
            | Deed::PartLost { part: Part::Lock }
            | Deed::TookOver { is_behind: true, .. } => {
                self.asked.clear();
                self.kept = None;
            }
            _ => {}
        }
        None
    }
}
