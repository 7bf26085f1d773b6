use std::{collections::BTreeMap, sync::Arc, time::Duration};

use leasehold_core::{LockName, Terms, lease::Grant};

use crate::slots::Key;

/// How a renewal ended, for a turn that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    Confirmed,
    /// Whether it was extended is unknown: try again soon, until the deadline.
    Unconfirmed,
}

/// Turns on the same terms that one command renews.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) patience: Duration,
    pub(crate) turns: Vec<(Key, Arc<Grant>)>,
}

impl Batch {
    pub(crate) const MAX: usize = 256;

    /// A batch for each part of the store in which its names live.
    pub(crate) fn by_shard(self, shard: impl Fn(&LockName) -> usize) -> Vec<Self> {
        let Self { patience, turns } = self;
        let mut shards = turns.iter().map(|(_, turn)| shard(turn.name()));
        let first = shards.next();
        // As a rule.
        if shards.all(|other| Some(other) == first) {
            return vec![Self { patience, turns }];
        }
        let mut parts = BTreeMap::<usize, Vec<_>>::new();
        for (key, turn) in turns {
            parts.entry(shard(turn.name())).or_default().push((key, turn));
        }
        parts.into_values().map(|turns| Self { patience, turns }).collect()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Batches {
    full: Vec<Batch>,
    /// By terms; turns whose answer is awaited for less than a sixth of the ttl have their own.
    open: BTreeMap<(Terms, bool), Batch>,
}

impl Batches {
    pub(crate) fn add(&mut self, key: Key, turn: &Arc<Grant>, patience: Duration) {
        let kind = (turn.terms(), patience < turn.ttl().get() / 6);
        let open = self.open.entry(kind).or_insert_with(|| Batch { patience, turns: Vec::new() });
        open.patience = open.patience.min(patience);
        open.turns.push((key, Arc::clone(turn)));
        if open.turns.len() == Batch::MAX {
            self.full.extend(self.open.remove(&kind));
        }
    }

    pub(crate) fn into_commands(self) -> impl Iterator<Item = Batch> {
        self.full.into_iter().chain(self.open.into_values())
    }
}

/// How many turns on the same terms still fit into a command that is sent anyway. Terms without
/// room are left out.
#[derive(Debug, Default)]
pub(crate) struct SpareRoom(BTreeMap<Terms, usize>);

impl SpareRoom {
    pub(crate) fn add(&mut self, terms: Terms) {
        let room = self.0.entry(terms).or_insert(Batch::MAX);
        *room -= 1;
        if *room == 0 {
            self.0.remove(&terms);
        }
    }

    /// Whether a turn on these terms fits without another command.
    pub(crate) fn is_for(&self, terms: Terms) -> bool {
        self.0.contains_key(&terms)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::Ttl;

    use super::*;

    #[test]
    fn a_command_has_room_once_it_has_begun_and_until_it_is_full() {
        let ttl = |seconds| Terms::without_acks(Ttl::new(Duration::from_secs(seconds)).unwrap());
        let mut room = SpareRoom::default();
        assert!(room.is_empty() && !room.is_for(ttl(1)));
        for _ in 1..Batch::MAX {
            room.add(ttl(1));
            assert!(!room.is_empty() && room.is_for(ttl(1)) && !room.is_for(ttl(2)));
        }
        room.add(ttl(1));
        assert!(room.is_empty() && !room.is_for(ttl(1)));
    }
}
