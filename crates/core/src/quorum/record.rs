use std::{collections::BTreeMap, time::Duration};

use super::{node::QuorumNode, store::Inner, tally::Nodes};
use crate::{
    clock::Instant,
    lease::HoldUpdate,
    types::{AcquisitionId, FenceToken, LockName, RuntimeLabel},
};

/// A lease of this process that a majority granted: where it is, and under which try.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) name: LockName,
    pub(crate) attempt: u64,
    pub(crate) first: FenceToken,
    pub(crate) last: FenceToken,
    pub(crate) before: u64,
    /// The nodes that were asked for it: it may be there.
    pub(crate) asked: Nodes,
    /// Whether the other nodes may remember that it waits.
    pub(crate) has_waited: bool,
    /// The nodes that are known to have it.
    pub(crate) holding: Nodes,
    /// The nodes that had it, and lost it: they are never asked for it again.
    pub(crate) barred: Nodes,
    /// The nodes that have ended it for us.
    pub(crate) ended: Nodes,
    /// Whether its end was asked for.
    pub(crate) is_ending: bool,
    pub(crate) label: RuntimeLabel,
    pub(crate) keeps: bool,
    pub(crate) holds: Option<HoldUpdate>,
    /// Until when a majority has it at least, by what was told in time.
    pub(crate) until: Instant,
}

impl Record {
    /// A majority was told to hold it for so long from this instant on, or for longer. Returns how
    /// long it lasts by all that is known: a majority with an earlier end does not shorten it.
    pub(crate) fn lasts(&mut self, sent_at: Instant, remaining: Duration) -> Duration {
        self.until = self.until.max(sent_at + remaining);
        self.until.saturating_since(sent_at)
    }

    /// Remembers a change of the holds, unless a later one is known.
    pub(crate) fn hold(&mut self, update: HoldUpdate) {
        if self.holds.is_none_or(|known| known.number < update.number) {
            self.holds = Some(update);
        }
    }
}

/// The lease that a command is about, as this process knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) attempt: u64,
    pub(crate) fence: u64,
    pub(crate) asked: Nodes,
    pub(crate) has_waited: bool,
    pub(crate) holding: Nodes,
    pub(crate) ended: Nodes,
    pub(crate) until: Instant,
}

impl Known {
    fn of(record: &Record) -> Self {
        Self {
            attempt: record.attempt,
            fence: record.last.get(),
            asked: record.asked,
            has_waited: record.has_waited,
            holding: record.holding,
            ended: record.ended,
            until: record.until,
        }
    }
}

/// The leases of this process, by acquisition.
#[derive(Debug, Default)]
pub(crate) struct Records {
    all: BTreeMap<AcquisitionId, Record>,
    /// How many there were after the last sweep.
    swept: usize,
}

impl Records {
    pub(crate) fn get(&self, id: AcquisitionId) -> Option<&Record> {
        self.all.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: AcquisitionId) -> Option<&mut Record> {
        self.all.get_mut(&id)
    }

    /// Adds one; those of leases that ran out go when they are as many as all others.
    pub(crate) fn insert(&mut self, id: AcquisitionId, record: Record, now: Instant) {
        self.all.insert(id, record);
        if self.all.len() > self.swept * 2 + 64 {
            self.all.retain(|_, record| record.until > now);
            self.swept = self.all.len();
        }
    }

    pub(crate) fn remove(&mut self, id: AcquisitionId) {
        self.all.remove(&id);
    }
}

impl<N: QuorumNode> Inner<N> {
    pub(crate) fn known(
        &self,
        name: &LockName,
        id: AcquisitionId,
        fence: FenceToken,
    ) -> Option<Known> {
        let records = self.records.lock();
        let its = records.get(id).filter(|record| record.first == fence && record.name == *name);
        its.map(Known::of)
    }

    /// The same, and from now on the lease is not spread to further nodes.
    pub(crate) fn known_to_end(
        &self,
        name: &LockName,
        id: AcquisitionId,
        fence: FenceToken,
    ) -> Option<Known> {
        let mut records = self.records.lock();
        let its = records.get_mut(id);
        let record = its.filter(|record| record.first == fence && record.name == *name)?;
        record.is_ending = true;
        Some(Known::of(record))
    }
}
