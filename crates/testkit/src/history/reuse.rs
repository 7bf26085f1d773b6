use std::collections::{BTreeMap, BTreeSet};

use leasehold_core::{AcquisitionId, Fence, Instant, RuntimeId};

use super::{blocks::Blocks, deed::Deed, event::Event, violation::Violation};

/// What a runtime has sent about its acquisitions.
#[derive(Debug, Default)]
struct Sent {
    /// Acquisitions of which a task had a lease.
    had_turn: BTreeSet<AcquisitionId>,
    /// The first tokens of those turns.
    begun: BTreeSet<Fence>,
    /// Acquisitions whose turn was ended.
    ended: BTreeSet<AcquisitionId>,
    withdrawn: BTreeSet<AcquisitionId>,
    /// Grants that were released by their first token.
    released: BTreeSet<(AcquisitionId, Fence)>,
    /// The last acquisition that each runtime asked for.
    last: BTreeMap<RuntimeId, AcquisitionId>,
    told: BTreeSet<AcquisitionId>,
}

/// Checks that nothing asks under an id that was withdrawn, or whose turn was ended, and that a
/// grant of an acquisition that the runtime has left behind is withdrawn by its id.
///
/// A grant that was let go without a lease of it in a task's hands does not end its id.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) {
    let mut sent = Sent::default();
    for event in events {
        match *event {
            Event::Granted { lease, fence, .. } => {
                if let Some(block) = blocks.of(lease.runtime(), fence) {
                    sent.had_turn.insert(block.id);
                    sent.begun.insert(block.first);
                }
            }
            Event::Spied { at, deed } => violations.extend(sent.sends(at, deed)),
            _ => {}
        }
    }
}

impl Sent {
    fn sends(&mut self, at: Instant, deed: Deed) -> Option<Violation> {
        match deed {
            Deed::WithdrawSent { id } => {
                self.withdrawn.insert(id);
            }
            Deed::ReleaseSent { id, first } => {
                let is_new = self.released.insert((id, first)) && !self.begun.contains(&first);
                let is_orphan = is_new && self.is_left_behind(id);
                if self.had_turn.contains(&id) {
                    self.ended.insert(id);
                }
                return is_orphan.then_some(Violation::OrphanReleased { id, first, at });
            }
            Deed::AskSent { id } => {
                let last = self.last.entry(id.runtime()).or_insert(id);
                *last = id.max(*last);
                let is_dead = self.ended.contains(&id) || self.withdrawn.contains(&id);
                if is_dead && self.told.insert(id) {
                    return Some(Violation::IdReused { id, at });
                }
            }
            _ => {}
        }
        None
    }

    /// Whether a grant of an acquisition may stand of which its runtime knows nothing. What was
    /// withdrawn has none, whatever is released after that: an offer of its turn may be open still.
    fn is_left_behind(&self, id: AcquisitionId) -> bool {
        let is_last = self.last.get(&id.runtime()).is_none_or(|last| *last <= id);
        !self.withdrawn.contains(&id) && (self.ended.contains(&id) || !is_last)
    }
}
