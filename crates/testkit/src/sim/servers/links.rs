use std::time::Duration;

use leasehold_core::Instant;

use super::{fleet::Fleet, news::Copying};

/// What is on its way from masters to their replicas.
impl Fleet {
    /// The replicas of a server, and the link to each.
    pub(in crate::sim) fn followers(&self, node: usize) -> Vec<(usize, u64)> {
        self.nodes[node].stream.followers()
    }

    /// When a write arrives at a replica that would by itself take until `at`.
    pub(in crate::sim) fn arrival(
        &mut self,
        node: usize,
        replica: usize,
        at: Instant,
        apart: Duration,
    ) -> Instant {
        self.nodes[node].stream.arrival(replica, at.max(self.stalled_until), apart)
    }

    /// No write arrives at a replica before then.
    pub(in crate::sim) fn stall(&mut self, until: Instant) {
        self.stalled_until = self.stalled_until.max(until);
    }

    /// Nothing on its way to a replica takes longer than until then.
    pub(in crate::sim) fn hurry(&mut self, latest: Instant) {
        self.stalled_until = self.stalled_until.min(latest);
        self.nodes.iter_mut().for_each(|node| node.stream.hurry(latest));
    }

    /// A write arrives at a replica; whether it has it now.
    pub(in crate::sim) fn copy(&mut self, copying: &Copying) -> bool {
        let Copying { master, replica, link, number, rows } = copying;
        if !self.nodes[*master].stream.arrived(*replica, *link, *number) {
            return false;
        }
        let memory = self.nodes[*replica].server.memory();
        for (name, copied) in rows {
            memory.paste(name, copied);
        }
        true
    }

    /// A master hears that a replica has a write.
    pub(in crate::sim) fn acknowledged(
        &mut self,
        master: usize,
        replica: usize,
        link: u64,
        number: u64,
    ) {
        self.nodes[master].stream.acknowledged(replica, link, number);
    }

    /// How many replicas of a server are known to have a write.
    pub(in crate::sim) fn count(&self, node: usize, number: u64) -> usize {
        self.nodes[node].stream.count(number)
    }

    /// A server does not reach its replicas any more, but for one: what is on its way is lost.
    pub(in crate::sim) fn cut_off(&mut self, node: usize, beside: Option<usize>) {
        for (replica, _) in self.followers(node) {
            if beside != Some(replica) {
                self.nodes[node].stream.lose(replica);
            }
        }
        self.beside = beside;
    }

    /// The replica that is cut off together with its master.
    pub(in crate::sim) fn beside(&self) -> Option<usize> {
        self.beside
    }
}
