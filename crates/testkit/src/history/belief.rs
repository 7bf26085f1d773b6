use std::collections::BTreeMap;

use leasehold_core::{AcquisitionId, Instant};

use super::{blocks::Blocks, deed::Deed, event::Event, summary::Summary, violation::Overlap};

/// When a lease was believed in, from its grant on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Belief {
    pub(super) from: Instant,
    until: Instant,
    ended_at: Option<Instant>,
}

impl Belief {
    /// The end of belief: what was believed last, or an earlier release or loss.
    pub(super) fn end(&self) -> Instant {
        self.ended_at.map_or(self.until, |at| at.min(self.until))
    }

    fn end_by(&mut self, at: Instant) {
        self.ended_at = Some(self.ended_at.map_or(at, |before| before.min(at)));
    }
}

/// The times in which each lease was believed in, as far as the server stood by it.
pub(super) type Beliefs = BTreeMap<AcquisitionId, Belief>;

/// Finds the times in which two leases were believed in, and refusals of believed leases.
pub(super) fn check(events: &[Event], beliefs: Beliefs, summary: &mut Summary) {
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

/// Reads when each lease was believed in out of the events.
pub(super) fn gather(events: &[Event], blocks: &Blocks, summary: &mut Summary) -> Beliefs {
    let mut beliefs = Beliefs::new();
    for event in events {
        if let Event::Granted { lease, fence, granted_at: at, .. } = *event {
            let void = blocks.of(lease.runtime(), fence).and_then(|block| block.void_since);
            beliefs.entry(lease).or_insert(Belief { from: at, until: at, ended_at: void });
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
            Event::Spied { at, deed: Deed::Crashed { runtime } } => {
                let of_runtime = |lease: &AcquisitionId| lease.runtime() == runtime;
                let dead = beliefs.iter_mut().filter(|(lease, _)| of_runtime(lease));
                dead.for_each(|(_, belief)| belief.end_by(at));
                continue;
            }
            _ => continue,
        };
        if let Some(belief) = beliefs.get_mut(&lease) {
            belief.end_by(at);
        }
    }
    beliefs
}
