use leasehold_core::Replication;
use redis::Value;

use super::{
    network::{Letter, Outcome},
    servers::{News, Waiting},
    world::{World, lock},
};

/// Commands whose answers wait until replicas have what was written.
impl World {
    /// Answers a command once so many replicas have its write, or its time is over.
    pub(super) fn wait(&mut self, letter: Letter, outcome: Outcome, write: u64, acks: Replication) {
        let (node, number) = (letter.lane.node, write);
        // As the real store: so the answer has time to arrive.
        let time = acks.timeout().min(letter.patience / 4 * 3);
        let write = (self.rules.waits_for)(write);
        let waiting = Waiting { letter, outcome, write, acks };
        lock(&self.fleet).nodes[node].waiting.insert(number, waiting);
        lock(&self.wire).spread(News::Waited { master: node, number }, time);
        self.look_at_waits(node);
    }

    /// Answers those that have waited for long enough replicas.
    pub(super) fn look_at_waits(&mut self, node: usize) {
        let mut fleet = lock(&self.fleet);
        let has_all = |waiting: &Waiting| {
            fleet.count(node, waiting.write) >= usize::from(waiting.acks.replicas())
        };
        let waiting = fleet.nodes[node].waiting.iter();
        let done: Vec<u64> =
            waiting.filter(|(_, one)| has_all(one)).map(|(number, _)| *number).collect();
        let take = |number| fleet.nodes[node].waiting.remove(&number);
        let done: Vec<Waiting> = done.into_iter().filter_map(take).collect();
        drop(fleet);
        for waiting in done {
            self.end_wait(node, waiting);
        }
    }

    /// Answers a command by how many replicas have its write.
    pub(super) fn end_wait(&mut self, node: usize, waiting: Waiting) {
        let Waiting { letter, outcome, write, acks } = waiting;
        let count = lock(&self.fleet).count(node, write);
        let counted = Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
        let acknowledged = || (self.rules.acknowledged)(acks, Some(&counted));
        let outcome = Waiting::judge(outcome, acknowledged);
        let Letter { lane, call, slot, loses_reply, .. } = letter;
        if let Some(slot) = slot.filter(|_| !loses_reply) {
            lock(&self.wire).reply(lane, call, slot, outcome);
        }
    }

    /// The connections to a server are gone, and with them all that waits.
    pub(super) fn end_waits(&mut self, node: usize) {
        lock(&self.fleet).nodes[node].waiting.clear();
    }
}
