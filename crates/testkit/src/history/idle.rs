use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use leasehold_core::{AcquisitionId, Fence, Instant, RuntimeId};

use super::{
    blocks::{Block, Blocks},
    deed::Deed,
    event::Event,
    violation::Violation,
};

/// A turn, as far as its tasks told of it.
#[derive(Debug, Clone, Copy)]
struct Turn {
    began_at: Instant,
    /// How many leases its runtime had had by then since an idle turn of it was recalled.
    since_recall: Option<usize>,
    held: Option<AcquisitionId>,
    believed_until: Instant,
    /// When its last lease was released; `None` while there is one.
    idle_since: Option<Instant>,
}

/// How many leases in a row come at least between a recall and the next turn that is kept.
const UNWANTED: usize = 3;

/// Checks that an idle turn ends for a reason: its time is over, another runtime wants the lock, or
/// a task that came asks for more than it has. After a recall no turn is kept for some leases.
pub(super) fn check(events: &[Event], blocks: &Blocks, violations: &mut Vec<Violation>) {
    let keeps = events.iter().find_map(|event| match *event {
        Event::Keeps { idle, ttl, to_enter } => Some((idle, ttl, to_enter)),
        _ => None,
    });
    let Some(times) = keeps else { return };
    let (mut turns, mut turn_of) = (BTreeMap::<Fence, Turn>::new(), BTreeMap::new());
    let (mut wanted, mut recalled) = (BTreeSet::new(), BTreeMap::<RuntimeId, usize>::new());
    for (event, next) in events.iter().zip(events.iter().skip(1).map(Some).chain([None])) {
        match *event {
            Event::Granted { lease, fence, granted_at: at, .. } => {
                let Some(&Block { id, first, .. }) = blocks.of(lease.runtime(), fence) else {
                    continue;
                };
                let since_recall = recalled.get(&id.runtime()).copied();
                let turn = turns.entry(first).or_insert_with(|| Turn::new(at, since_recall));
                if turn.is_kept_soon(at) {
                    violations.push(Violation::KeptAgain { id, first, at });
                }
                (turn.held, turn.idle_since) = (Some(lease), None);
                if turn_of.insert(lease, first).is_none() {
                    recalled.entry(id.runtime()).and_modify(|leases| *leases += 1);
                }
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
                let Some(mut turn) = turns.remove(&first) else { continue };
                if turn.is_kept_soon(at) {
                    violations.push(Violation::KeptAgain { id, first, at });
                }
                let is_followed =
                    matches!(next, Some(Event::Spied { deed: Deed::AskSent { .. }, .. }));
                match turn.ends_early(at, times) && !is_followed {
                    true if wanted.contains(&first) => drop(recalled.insert(id.runtime(), 0)),
                    true => violations.push(Violation::IdleEnded { id, first, at }),
                    false => {}
                }
            }
            _ => {}
        }
    }
}

impl Turn {
    fn new(began_at: Instant, since_recall: Option<usize>) -> Self {
        Self { began_at, since_recall, held: None, believed_until: began_at, idle_since: None }
    }

    fn was_idle(&self, at: Instant) -> bool {
        self.idle_since.is_some_and(|since| since < at)
    }

    /// Whether it was idle before `at`, and had time left.
    fn ends_early(
        &self,
        at: Instant,
        (idle, ttl, to_enter): (Duration, Duration, Duration),
    ) -> bool {
        let Some(since) = self.idle_since.filter(|_| self.was_idle(at)) else { return false };
        // A clock may run at another rate.
        let [idle, ttl] = [idle, ttl].map(|time| time / 50 * 49);
        let over = (since + idle).min(self.began_at + ttl);
        at < over.min(self.believed_until - to_enter - to_enter / 50)
    }

    /// Whether it was idle before `at`, and a recall was too few leases ago; said once.
    fn is_kept_soon(&mut self, at: Instant) -> bool {
        let is_idle = self.was_idle(at);
        self.since_recall.take_if(|leases| is_idle && *leases < UNWANTED).is_some()
    }
}
