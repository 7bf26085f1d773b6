use std::time::Duration;

use leasehold_core::LockName;
use leasehold_redis::slot_of_lock;

use super::{
    servers::{Layout, News, State},
    trace::Step,
    world::{World, lock},
};

/// Slots of a Cluster that move.
impl World {
    /// The slot of a lock is on its way to another server.
    pub fn begin_move(&mut self, name: &LockName, to: usize) {
        let slot = slot_of_lock(name);
        self.note(|| Step::Note(format!("{name} (slot {slot}) begins to move to {to}")));
        lock(&self.fleet).begin_move(slot, to);
    }

    /// Some keys of the lock have moved, and others have not.
    pub fn tear(&mut self, name: &LockName) {
        lock(&self.fleet).tear(slot_of_lock(name));
    }

    /// All keys of the lock have moved.
    pub fn move_keys(&mut self, name: &LockName) {
        self.note(|| Step::Note(format!("the keys of {name} have moved")));
        lock(&self.fleet).finish_keys(slot_of_lock(name));
    }

    /// The other server owns the slot of a lock from now on; other nodes hear of it within
    /// `slowness`.
    pub fn end_move(&mut self, name: &LockName, slowness: Duration) {
        let slot = slot_of_lock(name);
        let mut fleet = lock(&self.fleet);
        let Some((owner, epoch)) = fleet.end_move(slot) else { return };
        let Layout::Cluster { masters, .. } = fleet.layout else { return };
        drop(fleet);
        self.note(|| Step::Note(format!("{name} has moved to {owner}")));
        let mut wire = lock(&self.wire);
        for node in (0..masters).filter(|node| *node != owner) {
            let after = self.dice.spread(Duration::from_micros(1), slowness);
            wire.spread(News::Owner { node, slot, owner, epoch }, after);
        }
    }

    /// All masters of the Cluster are stopped: what is sent to them waits in their sockets.
    pub fn doze(&mut self) {
        self.note(|| Step::Note("all masters are stopped".into()));
        let mut fleet = lock(&self.fleet);
        let Layout::Cluster { masters, .. } = fleet.layout else { return };
        for node in fleet.nodes[..masters].iter_mut().filter(|node| node.state == State::Awake) {
            node.state = State::Asleep;
        }
    }

    /// A server that owns no slot any more is taken away.
    pub fn leave(&mut self, node: usize) {
        let mut fleet = lock(&self.fleet);
        if !fleet.owns_nothing(node) {
            return;
        }
        fleet.nodes[node].state = State::Dead;
        drop(fleet);
        self.note(|| Step::Note(format!("{node} has left")));
        lock(&self.wire).hang_up(node);
    }
}
