use std::collections::BTreeMap;

use leasehold_core::{AcquisitionId, Instant};

use super::{event::Event, summary::Summary, violation::Overlap};

/// When a lease was believed in, from its grant on.
#[derive(Debug, Clone, Copy)]
struct Belief {
    from: Instant,
    until: Instant,
    ended_at: Option<Instant>,
}

impl Belief {
    /// The end of belief: what was believed last, or an earlier release or loss.
    fn end(&self) -> Instant {
        self.ended_at.map_or(self.until, |at| at.min(self.until))
    }
}

/// Finds the times in which two leases were believed in, and refusals of believed leases.
pub(super) fn check(events: &[Event], summary: &mut Summary) {
    let beliefs = gather(events, summary);
    for event in events {
        if let Event::Wrote { lease, at, accepted: false, .. } = event
            && beliefs.get(lease).is_some_and(|belief| *at < belief.end())
        {
            summary.refused_in_belief += 1;
        }
    }
    let mut sorted: Vec<_> = beliefs.into_iter().collect();
    sorted.sort_by_key(|(_, belief)| belief.from);
    let mut longest: Option<(AcquisitionId, Instant)> = None;
    for (second, belief) in sorted {
        if let Some((first, end)) = longest {
            let by = end.min(belief.end()).saturating_since(belief.from);
            if !by.is_zero() {
                summary.overlaps.push(Overlap { first, second, by });
            }
        }
        if longest.is_none_or(|(_, end)| belief.end() > end) {
            longest = Some((second, belief.end()));
        }
    }
}

fn gather(events: &[Event], summary: &mut Summary) -> BTreeMap<AcquisitionId, Belief> {
    let mut beliefs = BTreeMap::new();
    for event in events {
        if let Event::Granted { lease, granted_at: at, .. } = *event {
            beliefs.entry(lease).or_insert(Belief { from: at, until: at, ended_at: None });
        }
    }
    // A second round: events of several workers need not be in the order of time.
    for event in events {
        let (lease, at) = match *event {
            Event::BelievedUntil { lease, until } => {
                if let Some(belief) = beliefs.get_mut(&lease) {
                    belief.until = belief.until.max(until);
                }
                continue;
            }
            Event::Released { lease, at } => {
                summary.released += 1;
                (lease, at)
            }
            Event::Lost { lease, at } => {
                summary.lost += 1;
                (lease, at)
            }
            _ => continue,
        };
        if let Some(belief) = beliefs.get_mut(&lease) {
            belief.ended_at = Some(belief.ended_at.map_or(at, |before| before.min(at)));
        }
    }
    beliefs
}
