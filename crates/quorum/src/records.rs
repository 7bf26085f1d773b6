use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{AcquisitionId, Fence, Instant, LockName, RuntimeLabel, lease::HoldUpdate};

use super::{
    node::{NodeCommand, Word},
    tally::{NodeSet, bit},
};

/// A lease of this process that a majority granted: where it is, and under which try.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) name: LockName,
    pub(super) id: AcquisitionId,
    pub(super) attempt: u64,
    pub(super) first: Fence,
    pub(super) last: Fence,
    pub(super) before: u64,
    /// The nodes that were asked for it: it may be there.
    pub(super) asked: NodeSet,
    /// Whether the other nodes may remember that it waits.
    pub(super) has_waited: bool,
    /// The nodes that are known to have it.
    pub(super) holding: NodeSet,
    /// The nodes that had it, and lost it: they are never asked for it again.
    pub(super) barred: NodeSet,
    /// The nodes that have ended it for us.
    pub(super) ended: NodeSet,
    /// Whether its end was asked for.
    pub(super) is_ending: bool,
    pub(super) label: RuntimeLabel,
    pub(super) keeps: bool,
    pub(super) holds: Option<HoldUpdate>,
    /// Until when a majority has it at least, by the answers that came in time.
    pub(super) until: Instant,
}

impl Record {
    /// A majority was told to hold it for so long from this instant on, or for longer. Returns how
    /// long it lasts by all that is known: a majority with an earlier end does not shorten it.
    pub(super) fn lasts(&mut self, sent_at: Instant, remaining: Duration) -> Duration {
        self.until = self.until.max(sent_at + remaining);
        self.until.saturating_since(sent_at)
    }

    /// Remembers a change of the holds, unless a later one is known.
    pub(super) fn hold(&mut self, update: HoldUpdate) {
        if self.holds.is_none_or(|known| known.number < update.number) {
            self.holds = Some(update);
        }
    }

    /// The command that ends it at a node. A node that has not answered may get the vote later.
    pub(super) fn end(&self, node: usize) -> NodeCommand {
        let marks = self.asked & !self.holding & bit(node) != 0;
        let word = Word::End { attempt: self.attempt, fence: 0, marks };
        NodeCommand { name: self.name.clone(), id: self.id, word }
    }
}

/// The leases of this process, by acquisition.
#[derive(Debug, Default)]
pub(super) struct Records {
    all: BTreeMap<AcquisitionId, Record>,
    /// How many there were after the last sweep.
    swept: usize,
}

impl Records {
    pub(super) fn get(&self, id: AcquisitionId) -> Option<&Record> {
        self.all.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: AcquisitionId) -> Option<&mut Record> {
        self.all.get_mut(&id)
    }

    /// The lease that a command is about.
    pub(super) fn find(
        &mut self,
        name: &LockName,
        id: AcquisitionId,
        fence: Fence,
    ) -> Option<&mut Record> {
        self.get_mut(id).filter(|record| record.first == fence && record.name == *name)
    }

    /// Adds a record. Records of expired leases are removed when they are as many as all others.
    pub(super) fn insert(&mut self, record: Record, now: Instant) {
        self.all.insert(record.id, record);
        if self.all.len() > self.swept * 2 + 64 {
            self.all.retain(|_, record| record.until > now);
            self.swept = self.all.len();
        }
    }

    pub(super) fn remove(&mut self, id: AcquisitionId) {
        self.all.remove(&id);
    }
}
