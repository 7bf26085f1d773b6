use std::{collections::BTreeMap, sync::Arc, time::Duration};

use leasehold_core::{LockName, Terms, lease::Grant};

use crate::Key;

/// How a renewal ended, for a turn that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    Confirmed,
    /// Whether it was extended is unknown: try again soon, until the deadline.
    Unconfirmed,
}

/// Turns on the same terms that one command renews.
#[derive(Debug)]
pub(crate) struct RenewalBatch {
    pub(crate) patience: Duration,
    pub(crate) turns: Vec<(Key, Arc<Grant>)>,
}

impl RenewalBatch {
    pub(crate) const MAX: usize = 256;

    /// A batch for each part of the store in which its names live.
    pub(crate) fn by_shard(self, shard: impl Fn(&LockName) -> usize) -> Vec<Self> {
        let Self { patience, turns } = self;
        let mut parts = BTreeMap::<usize, Vec<_>>::new();
        for (key, turn) in turns {
            parts.entry(shard(turn.name())).or_default().push((key, turn));
        }
        parts.into_values().map(|turns| Self { patience, turns }).collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Batches {
    full: Vec<RenewalBatch>,
    /// Not full yet, by terms; turns whose answer is awaited for less than a sixth of the ttl have
    /// their own.
    open: BTreeMap<(Terms, bool), RenewalBatch>,
}

impl Batches {
    pub(crate) fn add(&mut self, key: Key, turn: &Arc<Grant>, patience: Duration) {
        let kind = (turn.terms(), patience < turn.ttl().get() / 6);
        let open =
            self.open.entry(kind).or_insert_with(|| RenewalBatch { patience, turns: Vec::new() });
        open.patience = open.patience.min(patience);
        open.turns.push((key, Arc::clone(turn)));
        if open.turns.len() == RenewalBatch::MAX {
            self.full.extend(self.open.remove(&kind));
        }
    }

    /// Whether another turn fits without another command.
    pub(crate) fn have_room(&self) -> bool {
        !self.open.is_empty()
    }

    /// The same for a turn on these terms.
    pub(crate) fn have_room_for(&self, terms: Terms) -> bool {
        [true, false].into_iter().any(|is_short| self.open.contains_key(&(terms, is_short)))
    }

    pub(crate) fn into_commands(self) -> impl Iterator<Item = RenewalBatch> {
        self.full.into_iter().chain(self.open.into_values())
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{
        AcquisitionId, Entropy, Fence, Instant, SystemEntropy, Ttl, store::Granted,
    };
    use slotmap::SlotMap;

    use super::*;

    fn turn(ttl: u64) -> Arc<Grant> {
        let ttl = Ttl::new(Duration::from_secs(ttl)).unwrap();
        let (name, first) = (LockName::new("a").unwrap(), Fence::try_from(1u64).unwrap());
        let id = AcquisitionId::new(SystemEntropy.runtime_id(), 1);
        let (remaining, contended, regressed) = (ttl.get(), false, false);
        let granted = Granted { first, last: first, remaining, contended, regressed };
        let (terms, now) = (Terms::without_acks(ttl), Instant::default());
        Arc::new(Grant::from_granted(&name, id, terms, now, &granted))
    }

    #[test]
    fn a_command_has_room_once_it_has_begun_and_until_it_is_full() {
        let (mut batches, one, other) = (Batches::default(), turn(60), turn(66));
        let key = SlotMap::with_key().insert(());
        assert!(!batches.have_room() && !batches.have_room_for(one.terms()));
        for _ in 1..RenewalBatch::MAX {
            batches.add(key, &one, Duration::from_secs(10));
            assert!(batches.have_room() && batches.have_room_for(one.terms()));
            assert!(!batches.have_room_for(other.terms()));
        }
        batches.add(key, &one, Duration::from_secs(10));
        assert!(!batches.have_room() && !batches.have_room_for(one.terms()));
    }
}
