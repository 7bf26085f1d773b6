use std::{sync::Arc, time::Duration};

use super::{
    command::{Lease, NodeAnswer, NodeCommand, NodeWaiter, Word},
    failure::too_few,
    flights::Flights,
    health::hedge,
    node::QuorumNode,
    round::Round,
    store::Inner,
    tally::{count, kth_longest, majority},
};
use crate::{
    clock::{Instant, within},
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

impl<N: QuorumNode> Inner<N> {
    pub(crate) async fn inspect(
        self: &Arc<Self>,
        name: &LockName,
        deadline: Instant,
    ) -> Result<Inspection, StoreError> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let id = AcquisitionId::new(self.entropy.runtime_id(), 0);
        let command = NodeCommand { name: name.clone(), id, word: Word::Inspect };
        let mut flights = Flights::none();
        for node in 0..nodes {
            flights.launch(node, self.send(node, command.clone(), deadline));
        }
        let mut seen = Seen::default();
        // A node that hangs holds nobody up for longer than another one would be asked in its place.
        let mut late_at = deadline;
        while let Some(Some((node, answer))) = within(&*self.clock, late_at, flights.next()).await {
            seen.answered += usize::from(answer.is_ok());
            match answer {
                Ok(NodeAnswer::Record(lease)) => seen.leases.push(*lease),
                Ok(NodeAnswer::Free { counter }) => seen.counter = seen.counter.max(counter),
                Ok(_) => seen.failures.push(self.strange(node)),
                Err(error) => seen.failures.push(error),
            }
            if seen.answered == needed {
                late_at = deadline.min(self.clock.now() + hedge(&self.health));
            }
        }
        if seen.answered < needed {
            return Err(too_few(seen.answered, nodes, &seen.failures, false));
        }
        Ok(self.inspection(seen))
    }

    /// The lease that a majority has, or may have as far as nodes have answered.
    fn inspection(&self, seen: Seen) -> Inspection {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let Seen { answered, counter, leases, .. } = seen;
        let alike = |one: &Lease| {
            let is_same = |other: &&Lease| other.id == one.id && other.attempt == one.attempt;
            leases.iter().filter(is_same).cloned().collect::<Vec<_>>()
        };
        let most = leases.iter().map(alike).max_by_key(Vec::len).unwrap_or_default();
        let fence = most.iter().map(|lease| lease.fence).max().unwrap_or(0);
        let Some(first) = most.first().filter(|_| most.len() + nodes - answered >= needed) else {
            return Inspection::Free { last_fence: FenceToken::try_from(counter).ok() };
        };
        let mut left: Vec<_> = most.iter().map(|lease| lease.remaining).collect();
        let remaining = kth_longest(&mut left, most.len().min(needed));
        let own = self.records.lock().get(first.id).map(|record| record.first);
        let Ok(fence) = own.map_or_else(|| FenceToken::try_from(fence.max(1)), Ok) else {
            return Inspection::Free { last_fence: None };
        };
        let keeps = !first.kept && first.label.starts_with(RuntimeLabel::KEEPS);
        let micros = self.micros();
        let mut waiting: Vec<_> = most.iter().flat_map(|lease| lease.waiters.clone()).collect();
        // The first of those alike is the one that was heard last.
        waiting.sort_unstable_by_key(|waiter| (waiter.since, waiter.id, waiter.silent_for));
        waiting.dedup_by_key(|waiter| waiter.id);
        let waiter = |NodeWaiter { id, since, silent_for, label }: NodeWaiter| {
            let waiting_for = Duration::from_micros(micros.saturating_sub(since));
            WaiterRecord { id, label, waiting_for, silent_for }
        };
        Inspection::Held(LeaseRecord {
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
            waiters: waiting.into_iter().map(waiter).collect(),
        })
    }

    pub(crate) async fn force_release(
        self: &Arc<Self>,
        command: ForceRelease<'_>,
    ) -> Result<ForceReleaseAnswer, StoreError> {
        let ForceRelease { name, id, fence, deadline } = command;
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let word = Word::Force { fence: fence.get() };
        let enough = |round: &Round| count(round.done | round.gone) == nodes;
        let round = self.everywhere(name, id, &word, deadline, enough).await;
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
