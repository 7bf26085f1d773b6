use std::collections::BTreeMap;

use super::tally::Nodes;
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
    /// Until when it is believed at most.
    pub(crate) until: Instant,
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
