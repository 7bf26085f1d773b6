use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{
    command::{NodeAnswer, NodeCommand, Word},
    failure::too_few,
    node::QuorumNode,
    record::Record,
    store::Inner,
    tally::{bit, majority},
};
use crate::{
    clock::{Instant, within},
    store::{RenewAnswer, Renewal, StoreError},
    types::AcquisitionId,
};

/// What the nodes have answered about one lease.
#[derive(Debug, Default)]
struct Count {
    left: Vec<Duration>,
    gone: usize,
    failures: Vec<StoreError>,
}

/// The answers of one node, by the place of the lease in the batch.
type Heard = (usize, Vec<(usize, Result<NodeAnswer, StoreError>)>);

impl<N: QuorumNode> Inner<N> {
    /// Extends leases on a majority, one call for each node. A node that was not asked for a lease so
    /// far is asked for its vote, so that a lease that lasts is on all nodes.
    pub(crate) async fn renew(
        self: &Arc<Self>,
        batch: &[Renewal],
        deadline: Instant,
    ) -> Vec<Result<RenewAnswer, StoreError>> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let sent_at = self.clock.now();
        let mut counts: Vec<_> = batch.iter().map(|_| Some(Count::default())).collect();
        let mut for_nodes: Vec<Vec<(usize, NodeCommand)>> = vec![Vec::new(); nodes];
        for (at, one) in batch.iter().enumerate() {
            let words = self.words(one, sent_at);
            if words.is_empty() {
                counts[at] = None;
            }
            for (node, word) in words {
                let command = NodeCommand { name: one.name.clone(), id: one.id, word };
                for_nodes[node].push((at, command));
            }
        }
        let (teller, mut heard) = mpsc::unbounded_channel::<Heard>();
        let until = deadline.min(sent_at + self.settings.patience());
        for (node, commands) in for_nodes.into_iter().enumerate() {
            if !commands.is_empty() {
                let (inner, teller) = (Arc::clone(self), teller.clone());
                let renewing = async move { inner.renew_at(node, commands, until, &teller).await };
                drop(self.runtime.spawn(renewing));
            }
        }
        drop(teller);
        let is_open = |count: &Option<Count>| {
            count
                .as_ref()
                .is_some_and(|count| count.left.len() < needed && count.gone <= nodes - needed)
        };
        while counts.iter().any(is_open)
            && let Some(Some((_, answers))) = within(&*self.clock, deadline, heard.recv()).await
        {
            for (at, answer) in answers {
                let Some(count) = &mut counts[at] else { continue };
                match answer {
                    Ok(NodeAnswer::Held { remaining, .. }) => count.left.push(remaining),
                    Ok(NodeAnswer::Gone | NodeAnswer::Out { .. }) => count.gone += 1,
                    Ok(_) => count.failures.push(super::failure::strange()),
                    Err(error) => count.failures.push(error),
                }
            }
        }
        let answer = |(count, one): (Option<Count>, &Renewal)| {
            let Some(mut count) = count else { return Ok(RenewAnswer::Gone) };
            if count.left.len() >= needed {
                let remaining = (self.rules.left)(&mut count.left, needed);
                let mut records = self.records.lock();
                let its = records.get_mut(one.id).filter(|record| record.first == one.fence);
                let remaining = its.map_or(remaining, |record| record.lasts(sent_at, remaining));
                return Ok(RenewAnswer::Renewed { remaining });
            }
            if count.gone > nodes - needed {
                return Ok(RenewAnswer::Gone);
            }
            let answered = count.left.len() + count.gone;
            Err(too_few(answered, nodes, &count.failures, true).for_lock(&one.name))
        };
        counts.into_iter().zip(batch).map(answer).collect()
    }

    /// What to tell the nodes about a lease; nothing if it is not one of this process.
    fn words(&self, one: &Renewal, now: Instant) -> Vec<(usize, Word)> {
        let mut records = self.records.lock();
        let its = records.get_mut(one.id);
        let Some(record) =
            its.filter(|record| record.first == one.fence && record.name == one.name)
        else {
            return Vec::new();
        };
        let word = |node| (node, self.word(record, node, one, now));
        (0..self.nodes.len()).map(word).collect()
    }

    fn word(&self, record: &mut Record, node: usize, one: &Renewal, now: Instant) -> Word {
        let (attempt, fence, ttl) = (record.attempt, record.last.get(), one.ttl.get());
        let is_held = now < record.until && !record.is_ending;
        let had_it = (record.holding | record.barred) & bit(node) != 0;
        if !(self.rules.may_spread)(is_held, had_it) {
            return Word::Renew { attempt, fence, ttl };
        }
        record.asked |= bit(node);
        let Record { before, holds, keeps, .. } = *record;
        let label = record.label.clone();
        Word::Spread { attempt, fence, before, ttl, holds, label, keeps }
    }

    async fn renew_at(
        self: Arc<Self>,
        node: usize,
        commands: Vec<(usize, NodeCommand)>,
        deadline: Instant,
        teller: &mpsc::UnboundedSender<Heard>,
    ) {
        let sent_at = self.clock.now();
        let (at, commands): (Vec<_>, Vec<_>) = commands.into_iter().unzip();
        let ids: Vec<_> = commands.iter().map(|one| (one.id, one.word.attempt())).collect();
        let answers = self.nodes[node].send_apart(commands, deadline).await;
        if let Some(first) = answers.first() {
            self.note(node, sent_at, first.as_ref());
        }
        for (id, answer) in ids.into_iter().zip(&answers) {
            self.note_lease(node, id, answer);
        }
        // Nobody may wait for it any more.
        drop(teller.send((node, at.into_iter().zip(answers).collect())));
    }

    /// Remembers whether a node has a lease.
    pub(crate) fn note_lease(
        &self,
        node: usize,
        (id, attempt): (AcquisitionId, u64),
        answer: &Result<NodeAnswer, StoreError>,
    ) {
        let mut records = self.records.lock();
        let record = records.get_mut(id).filter(|record| record.attempt == attempt);
        let Some(record) = record else { return };
        match answer {
            Ok(NodeAnswer::Held { .. }) => record.holding |= bit(node),
            Ok(NodeAnswer::Gone) if record.holding & bit(node) != 0 => {
                record.holding &= !bit(node);
                record.barred |= bit(node);
            }
            _ => {}
        }
    }
}
