use std::collections::{BTreeMap, BTreeSet};

use leasehold_redis::{Endpoint, seam::View};

use super::place::place_of;

/// Who owns the slots of the locks, as one node of a Cluster knows.
#[derive(Debug, Clone, Default)]
pub(super) struct Chart {
    /// The owner of each slot, and since which epoch.
    owners: BTreeMap<u16, (usize, u64)>,
    /// Slots of this node that are on their way to another.
    leaving: BTreeMap<u16, usize>,
    /// Slots that are on their way to this node.
    coming: BTreeSet<u16>,
    /// Slots of which some keys are here and some are not.
    torn: BTreeSet<u16>,
}

impl Chart {
    /// A slot has an owner from the beginning.
    pub(super) fn assign(&mut self, slot: u16, node: usize) {
        self.owners.entry(slot).or_insert((node, 0));
    }

    /// The owner of a slot.
    pub(super) fn owner(&self, slot: u16) -> Option<usize> {
        self.owners.get(&slot).map(|(owner, _)| *owner)
    }

    /// Where a slot of this node is on its way to.
    pub(super) fn leaving(&self, slot: u16) -> Option<usize> {
        self.leaving.get(&slot).copied()
    }

    /// Whether a slot is on its way to this node.
    pub(super) fn is_coming(&self, slot: u16) -> bool {
        self.coming.contains(&slot)
    }

    /// `CLUSTER SETSLOT slot MIGRATING to`
    pub(super) fn leave(&mut self, slot: u16, to: usize) {
        self.leaving.insert(slot, to);
    }

    /// `CLUSTER SETSLOT slot IMPORTING from`
    pub(super) fn come(&mut self, slot: u16) {
        self.coming.insert(slot);
    }

    /// Some keys of a slot have moved, and some have not; or all have.
    pub(super) fn tear(&mut self, slot: u16, is_torn: bool) {
        if is_torn {
            self.torn.insert(slot);
        } else {
            self.torn.remove(&slot);
        }
    }

    /// `CLUSTER SETSLOT slot NODE owner`, or what other nodes tell of it.
    pub(super) fn settle(&mut self, slot: u16, owner: usize, epoch: u64) {
        if self.owners.get(&slot).is_some_and(|(_, known)| *known >= epoch) {
            return;
        }
        self.owners.insert(slot, (owner, epoch));
        self.leaving.remove(&slot);
        self.coming.remove(&slot);
        self.torn.remove(&slot);
    }

    /// The highest epoch that it knows.
    pub(super) fn epoch(&self) -> u64 {
        self.owners.values().map(|(_, epoch)| *epoch).max().unwrap_or(0)
    }

    /// Whether the node `me` runs a command about a slot; otherwise, what it says. `has_keys` is
    /// whether it has any keys of the lock.
    pub(super) fn admits(
        &self,
        me: usize,
        slot: u16,
        is_asking: bool,
        has_keys: bool,
    ) -> Result<(), String> {
        let at = |node| {
            let Endpoint { host, port } = place_of(node);
            format!("{host}:{port}")
        };
        let is_here = self.owner(slot) == Some(me) || is_asking && self.coming.contains(&slot);
        match self.leaving.get(&slot) {
            _ if is_here && self.torn.contains(&slot) => Err("TRYAGAIN".into()),
            Some(to) if !has_keys => Err(format!("ASK {slot} {}", at(*to))),
            _ if is_here => Ok(()),
            _ => match self.owner(slot) {
                Some(owner) => Err(format!("MOVED {slot} {}", at(owner))),
                None => Err("CLUSTERDOWN".into()),
            },
        }
    }

    /// What the node answers to `CLUSTER SLOTS`, without the ids of its Cluster.
    pub(super) fn view(&self) -> View {
        let owners = self.owners.iter().map(|(slot, (node, _))| (*slot..=*slot, place_of(*node)));
        let (is_ok, nodes) = (!self.owners.is_empty(), BTreeMap::new());
        View { is_ok, epoch: self.epoch(), owners: owners.collect(), nodes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(answer: Result<(), String>) -> String {
        answer.err().unwrap_or_else(|| "runs".into())
    }

    #[test]
    fn a_slot_on_its_way_is_where_its_keys_are() {
        let (mut from, mut to) = (Chart::default(), Chart::default());
        for chart in [&mut from, &mut to] {
            chart.assign(7, 0);
        }
        to.come(7);
        from.leave(7, 1);
        assert_eq!(said(from.admits(0, 7, false, true)), "runs");
        assert_eq!(said(from.admits(0, 7, false, false)), "ASK 7 node:2");
        assert_eq!(said(to.admits(1, 7, false, true)), "MOVED 7 node:1");
        assert_eq!(said(to.admits(1, 7, true, true)), "runs");
        for chart in [&mut from, &mut to] {
            chart.tear(7, true);
        }
        assert_eq!(said(from.admits(0, 7, false, true)), "TRYAGAIN");
        assert_eq!(said(to.admits(1, 7, true, false)), "TRYAGAIN");
        to.settle(7, 1, 1);
        assert_eq!(said(to.admits(1, 7, false, true)), "runs");
        from.settle(7, 1, 1);
        assert_eq!(said(from.admits(0, 7, false, false)), "MOVED 7 node:2");
        assert!(to.view().epoch == 1 && from.view() == to.view());
    }
}
