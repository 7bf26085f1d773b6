use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use leasehold_core::{AcquisitionId, FenceToken, Instant};

use super::{blocks::Blocks, deed::Deed, event::Event, violation::Violation};

/// A turn, as far as its tasks told of it.
#[derive(Debug, Clone, Copy)]
struct Turn {
    began_at: Instant,
    held: Option<AcquisitionId>,
    believed_until: Instant,
    /// When its last lease was released; `None` while there is one.
    idle_since: Option<Instant>,
}

/// Checks that an idle turn ends for a reason: its time is over, another runtime wants the lock, or
/// a task that came asks for more than it has.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) {
    let keeps = events.iter().find_map(|event| match *event {
        Event::Keeps { idle, ttl, to_enter } => Some((idle, ttl, to_enter)),
        _ => None,
    });
    let Some(times) = keeps else { return };
    let (mut turns, mut turn_of) = (BTreeMap::<FenceToken, Turn>::new(), BTreeMap::new());
    let mut wanted = BTreeSet::new();
    for (event, next) in events.iter().zip(events.iter().skip(1).map(Some).chain([None])) {
        match *event {
            Event::Granted { lease, fence, granted_at, .. } => {
                let Some(block) = blocks.of(lease.runtime(), fence) else { continue };
                turn_of.insert(lease, block.first);
                let turn = turns.entry(block.first).or_insert_with(|| Turn::new(granted_at));
                (turn.held, turn.idle_since) = (Some(lease), None);
            }
            Event::BelievedUntil { lease, until } => {
                if let Some(turn) = turn_of.get(&lease).and_then(|first| turns.get_mut(first)) {
                    turn.believed_until = until;
                }
            }
            Event::Released { lease, at } => {
                let turn = turn_of.get(&lease).and_then(|first| turns.get_mut(first));
                if let Some(turn) = turn.filter(|turn| turn.held == Some(lease)) {
                    (turn.held, turn.idle_since) = (None, Some(at));
                }
            }
            Event::Spied { deed: Deed::Wanted { first }, .. } => drop(wanted.insert(first)),
            Event::Spied { at, deed: Deed::ReleaseSent { id, first } } => {
                let is_followed =
                    matches!(next, Some(Event::Spied { deed: Deed::AskSent { .. }, .. }));
                let has_reason = is_followed || wanted.contains(&first);
                let turn = turns.remove(&first).filter(|_| !has_reason);
                if turn.is_some_and(|turn| turn.ends_early(at, times)) {
                    violations.push(Violation::IdleEnded { id, first, at });
                }
            }
            _ => {}
        }
    }
}

impl Turn {
    fn new(began_at: Instant) -> Self {
        Self { began_at, held: None, believed_until: began_at, idle_since: None }
    }

    /// Whether it was idle before `at`, and had time left.
    fn ends_early(
        &self,
        at: Instant,
        (idle, ttl, to_enter): (Duration, Duration, Duration),
    ) -> bool {
        let Some(since) = self.idle_since else { return false };
        // A clock may run at another rate.
        let [idle, ttl] = [idle, ttl].map(|time| time / 50 * 49);
        let over = (since + idle).min(self.began_at + ttl);
        since < at && at < over.min(self.believed_until - to_enter - to_enter / 50)
    }
}
