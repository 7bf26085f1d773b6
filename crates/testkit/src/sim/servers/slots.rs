use leasehold_core::LockName;
use leasehold_redis::slot_of_lock;

use super::{fleet::Fleet, layout::Layout, node::Node};

/// Slots of a Cluster, and where their keys are.
impl Fleet {
    /// A slot is on its way to another server.
    pub(in crate::sim) fn begin_move(&mut self, slot: u16, to: usize) {
        let Some(from) = self.homes.get(&slot).copied().filter(|from| *from != to) else { return };
        self.nodes[to].chart.come(slot);
        self.nodes[from].chart.leave(slot, to);
    }

    /// Some keys of a slot have moved, and others have not.
    pub(in crate::sim) fn tear(&mut self, slot: u16) {
        if self.way(slot).is_some() {
            self.nodes.iter_mut().for_each(|node| node.chart.tear(slot, true));
        }
    }

    /// The keys of a slot have moved.
    pub(in crate::sim) fn finish_keys(&mut self, slot: u16) {
        let Some((from, to)) = self.way(slot) else { return };
        self.nodes.iter_mut().for_each(|node| node.chart.tear(slot, false));
        let of_slot = |name: &&LockName| slot_of_lock(name) == slot;
        let names: Vec<LockName> = self.names.iter().filter(of_slot).cloned().collect();
        for name in names {
            let copied = self.nodes[from].server.memory().take(&name);
            if !copied.is_empty() {
                self.nodes[to].server.memory().paste(&name, &copied);
            }
        }
        self.homes.insert(slot, to);
    }

    /// The target of a slot owns it; the owner and the epoch of that.
    pub(in crate::sim) fn end_move(&mut self, slot: u16) -> Option<(usize, u64)> {
        let (_, to) = self.way(slot)?;
        let Layout::Cluster { masters, .. } = self.layout else { return None };
        let known = self.nodes[..masters].iter().map(|node| node.chart.epoch());
        let epoch = 1 + known.max().unwrap_or(0);
        self.nodes[to].chart.settle(slot, to, epoch);
        Some((to, epoch))
    }

    /// A node hears who owns a slot.
    pub(in crate::sim) fn settle(&mut self, node: usize, slot: u16, owner: usize, epoch: u64) {
        self.nodes[node].chart.settle(slot, owner, epoch);
    }

    /// Whether no slot is on a server, or on its way to it.
    pub(in crate::sim) fn owns_nothing(&self, node: usize) -> bool {
        let chart = &self.nodes[node].chart;
        self.homes.keys().all(|slot| chart.owner(*slot) != Some(node) && !chart.is_coming(*slot))
    }

    /// From where to where a slot is on its way.
    fn way(&self, slot: u16) -> Option<(usize, usize)> {
        let leaves = |(from, node): (usize, &Node)| node.chart.leaving(slot).map(|to| (from, to));
        self.nodes.iter().enumerate().find_map(leaves)
    }
}
