use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::{
    command::{Lease, NodeAnswer, NodeCommand, NodeWaiter, Word},
    failure::{minority, too_few},
    node::QuorumNode,
    round::Round,
    store::Inner,
    tally::{count, kth_longest, majority},
};
use crate::{
    clock::Instant,
    store::{ForceRelease, ForceReleaseAnswer, Inspection, LeaseRecord, StoreError, WaiterRecord},
    types::{AcquisitionId, FenceToken, LockName, RuntimeLabel},
};

/// What the nodes tell of a lock.
#[derive(Debug, Default)]
struct Seen {
    answered: usize,
    counter: u64,
    leases: Vec<Lease>,
    failures: Vec<StoreError>,
}

impl Seen {
    /// The leases of the try that most nodes have.
    fn most(&self) -> Vec<&Lease> {
        let alike = |one: &Lease| {
            let is_same = |other: &&Lease| other.id == one.id && other.attempt == one.attempt;
            self.leases.iter().filter(is_same).collect::<Vec<_>>()
        };
        self.leases.iter().map(alike).max_by_key(Vec::len).unwrap_or_default()
    }

    /// Whether a majority has a lease, or none can have one, whatever the others answer.
    fn is_clear(&self, nodes: usize) -> bool {
        let (most, needed) = (self.most().len(), majority(nodes));
        self.answered >= needed && (most >= needed || most + nodes - self.answered < needed)
    }
}

impl<N: QuorumNode> Inner<N> {
    pub(crate) async fn inspect(
        self: &Arc<Self>,
        name: &LockName,
        deadline: Instant,
    ) -> Result<Inspection, StoreError> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let id = AcquisitionId::new(self.entropy.runtime_id(), 0);
        let command = NodeCommand { name: name.clone(), id, word: Word::Inspect };
        let mut seen = Seen::default();
        let on_reply = |node, reply| {
            let failure = self.failure(node, &reply);
            seen.answered += usize::from(failure.is_none());
            seen.failures.extend(failure);
            match reply {
                Ok(NodeAnswer::Record(lease)) => seen.leases.push(*lease),
                Ok(NodeAnswer::Free { counter }) => seen.counter = seen.counter.max(counter),
                Ok(NodeAnswer::Out { .. }) | Err(_) => {}
                Ok(_) => seen.failures.push(self.strange(node)),
            }
            seen.is_clear(nodes)
        };
        // A node that hangs holds nobody up for longer than another one would be asked in its place.
        self.gather(self.all(), |_| command.clone(), deadline, on_reply).await;
        if seen.answered < needed {
            return Err(too_few(seen.answered, nodes, &seen.failures, false));
        }
        self.inspection(&seen)
    }

    /// The lease that a majority has. What fewer have is one as well if this process knows that it is: nodes
    /// that have it may not answer. Otherwise it is unknown, unless it cannot be one.
    fn inspection(&self, seen: &Seen) -> Result<Inspection, StoreError> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let most = seen.most();
        let Seen { answered, counter, ref failures, .. } = *seen;
        let fence = most.iter().map(|lease| lease.fence).max().unwrap_or(0);
        let Some(first) = most.first().filter(|_| most.len() + nodes - answered >= needed) else {
            return Ok(Inspection::Free { last_fence: FenceToken::try_from(counter).ok() });
        };
        let mut left: Vec<_> = most.iter().map(|lease| lease.remaining).collect();
        let remaining = kth_longest(&mut left, most.len().min(needed));
        let own = self.own(first);
        let is_own = own.is_some_and(|(_, until)| self.clock.now() < until);
        if most.len() < needed && !is_own {
            return Err(minority(most.len(), answered, nodes, failures));
        }
        let told = || FenceToken::try_from(fence.max(1));
        let Ok(fence) = own.map_or_else(told, |(first, _)| Ok(first)) else {
            return Ok(Inspection::Free { last_fence: None });
        };
        let keeps = !first.kept && first.label.starts_with(RuntimeLabel::KEEPS);
        Ok(Inspection::Held(LeaseRecord {
            id: first.id,
            fence,
            holds: if first.kept {
                0
            } else {
                most.iter().map(|lease| lease.holds).max().unwrap_or(1)
            },
            remaining,
            label: first.label.strip_prefix(RuntimeLabel::KEEPS).unwrap_or(&first.label).to_owned(),
            held_for: most.iter().map(|lease| lease.held_for).max().unwrap_or_default(),
            kept: first.kept,
            keeps,
            idle: false,
            waiters: waiters(&most),
        }))
    }

    /// The first fence of a lease of this process, and until when a majority has it.
    fn own(&self, lease: &Lease) -> Option<(FenceToken, Instant)> {
        let records = self.records.lock();
        let its = records.get(lease.id).filter(|record| record.attempt == lease.attempt);
        its.map(|record| (record.first, record.until))
    }

    pub(crate) async fn force_release(
        self: &Arc<Self>,
        ForceRelease { name, id, fence }: ForceRelease,
        deadline: Instant,
    ) -> Result<ForceReleaseAnswer, StoreError> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let word = Word::Force { fence: fence.get() };
        let enough = |round: &Round| count(round.done | round.gone) == nodes;
        let round = self.everywhere(&name, id, &word, deadline, enough).await;
        if count(round.done | round.gone) < needed {
            let answered = count(round.done | round.gone);
            return Err(too_few(answered, nodes, &round.failures, true));
        }
        if round.done == 0 {
            return Ok(ForceReleaseAnswer::Changed);
        }
        // Otherwise a renewal might bring it to those that never had it, beside those that have not heard.
        if count(round.done) < needed {
            let word = Word::Pass { fence: round.counter };
            let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
            let ended = round.done;
            let enough = |passed: &Round| count(passed.done | ended) >= needed;
            let passed = self.round(round.gone, make, deadline, enough).await;
            if !enough(&passed) {
                let answered = count(passed.done | ended);
                return Err(too_few(answered, nodes, &passed.failures, true));
            }
        }
        Ok(ForceReleaseAnswer::Ended { fence: FenceToken::try_from(round.counter).ok() })
    }
}

/// Who waits, by what the nodes have seen together: those who wait for longer first.
fn waiters(leases: &[&Lease]) -> Vec<WaiterRecord> {
    let mut all = BTreeMap::new();
    for NodeWaiter { id, waiting_for, silent_for, label } in
        leases.iter().flat_map(|lease| &lease.waiters)
    {
        let record = WaiterRecord {
            id: *id,
            label: label.clone(),
            waiting_for: *waiting_for,
            silent_for: *silent_for,
        };
        let known = all.entry(*id).or_insert(record);
        known.waiting_for = known.waiting_for.max(*waiting_for);
        known.silent_for = known.silent_for.min(*silent_for);
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|waiter| Reverse(waiter.waiting_for));
    all
}
