use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use leasehold_core::{AcquisitionId, Fence, Instant, RuntimeId};

use super::{blocks::Blocks, deed::Deed, event::Event, violation::Violation};

/// What is granted less than this before the end of a steady time need not be taken by then.
const LAST: Duration = Duration::from_millis(500);

/// Checks that, while all who ask stay and are polled, no place dies and every grant is taken.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) {
    for event in events {
        let Event::Steady { from, until, takes_all } = *event else { continue };
        check_places(events, blocks, (from, until), violations);
        if takes_all {
            check_grants(events, blocks, (from, until), violations);
        }
    }
}

/// The places of one name, and until when each is live.
#[derive(Debug, Default)]
struct Places {
    live: BTreeMap<RuntimeId, (AcquisitionId, Instant)>,
    /// Acquisitions that their runtimes were done with.
    spent: BTreeSet<AcquisitionId>,
}

fn check_places(
    events: &[Event],
    blocks: &Blocks,
    (from, until): (Instant, Instant),
    violations: &mut Vec<Violation>,
) {
    let mut places = Places::default();
    for event in events {
        if let Event::Granted { lease, fence, .. } = *event {
            places.spent.extend(blocks.of(lease.runtime(), fence).map(|block| block.id));
        }
        let Event::Spied { at, deed } = *event else { continue };
        let dead = match deed {
            Deed::Queued { id, live_until, refreshed } => {
                places.hear(at, id, live_until, refreshed)
            }
            Deed::Minted { id, .. } => {
                let dead = places.dead(at);
                places.live.remove(&id.runtime());
                dead
            }
            Deed::Superseded { by } => {
                places.live.remove(&by.runtime());
                None
            }
            Deed::Withdrawn { id } | Deed::WithdrawSent { id } | Deed::ReleaseSent { id, .. } => {
                places.spent.insert(id);
                None
            }
            _ => None,
        };
        if let Some((id, live_until)) = dead.filter(|_| from <= at && at <= until) {
            places.spent.insert(id);
            violations.push(Violation::PlaceDied { id, live_until });
        }
    }
}

impl Places {
    fn hear(
        &mut self,
        at: Instant,
        id: AcquisitionId,
        live_until: Instant,
        refreshed: bool,
    ) -> Option<(AcquisitionId, Instant)> {
        if self.spent.contains(&id) {
            return None;
        }
        let before = self.live.get(&id.runtime()).copied().filter(|(known, _)| *known == id);
        match before {
            Some((_, until)) if refreshed => {
                self.live.insert(id.runtime(), (id, live_until));
                (until < at).then_some((id, until))
            }
            Some(_) => None,
            None => {
                self.live.insert(id.runtime(), (id, live_until));
                None
            }
        }
    }

    /// A place that is not live any more, and still wanted.
    fn dead(&mut self, at: Instant) -> Option<(AcquisitionId, Instant)> {
        let spent = &self.spent;
        self.live.retain(|_, (id, _)| !spent.contains(id));
        self.live.values().copied().find(|(_, until)| *until < at)
    }
}

fn check_grants(
    events: &[Event],
    blocks: &Blocks,
    (from, until): (Instant, Instant),
    violations: &mut Vec<Violation>,
) {
    let mut taken: BTreeSet<Fence> = BTreeSet::new();
    for event in events {
        if let Event::Granted { lease, fence, .. } = *event {
            taken.extend(blocks.of(lease.runtime(), fence).map(|block| block.first));
        }
    }
    for block in blocks.iter().filter(|block| !taken.contains(&block.first)) {
        let at = block.minted_at;
        if from <= at && at + LAST < until && block.void_since.is_none() {
            let (id, first) = (block.id, block.first);
            violations.push(Violation::GrantWasted { id, first, at });
        }
    }
}
