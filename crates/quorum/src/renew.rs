use std::{slice, sync::Arc, time::Duration};

use futures_util::stream::FuturesUnordered;
use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, Replication, StoreError, Ttl,
    store::{RenewAnswer, Renewal},
};

use super::{
    command::{NodeAnswer, NodeCommand, NodeReply, Word},
    node::QuorumNode,
    records::Record,
    round::{Round, gather},
    state::Quorum,
    tally::{bit, count, majority},
};

/// Extends leases on a majority, one call for each node. A node that was not asked for a lease so
/// far is asked for its vote, so that a lease that lasts is on all nodes.
pub(super) async fn renew<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    batch: &[Renewal],
    deadline: Instant,
) -> Vec<Result<RenewAnswer, StoreError>> {
    let nodes = &quorum.nodes;
    let sent_at = nodes.clock.now();
    let mut for_nodes = vec![Vec::new(); nodes.count()];
    let set_out = |one: &Renewal| {
        let mut records = quorum.records.lock();
        let record = records.find(&one.name, one.id, one.fence)?;
        for (node, commands) in for_nodes.iter_mut().enumerate() {
            commands.push(command(quorum, record, node, one.ttl.get(), sent_at));
        }
        Some(Round::default())
    };
    let mut rounds: Vec<_> = batch.iter().map(set_out).collect();
    let until = deadline.min(sent_at + nodes.settings.patience());
    let sent: FuturesUnordered<_> = for_nodes
        .into_iter()
        .enumerate()
        .filter(|(_, commands)| !commands.is_empty())
        .map(|(node, commands)| renew_at(Arc::clone(quorum), node, commands, until))
        .collect();
    let is_decided =
        |round: &Round| count(round.done) >= nodes.majority() || is_gone(round, nodes.count());
    gather(nodes, sent, deadline, Duration::ZERO, |node, replies| {
        for (round, reply) in rounds.iter_mut().flatten().zip(replies) {
            round.on_reply(node, reply);
        }
        rounds.iter().flatten().all(is_decided)
    })
    .await;
    let answer = |(round, one): (Option<Round>, &Renewal)| match round {
        Some(round) => renewed(quorum, one, round, sent_at),
        // This process does not know the lease.
        None => Ok(RenewAnswer::Gone),
    };
    rounds.into_iter().zip(batch).map(answer).collect()
}

/// What the replies about one lease mean.
fn renewed<N: QuorumNode>(
    quorum: &Quorum<N>,
    one: &Renewal,
    mut round: Round,
    sent_at: Instant,
) -> Result<RenewAnswer, StoreError> {
    let (nodes, needed) = (quorum.nodes.count(), quorum.nodes.majority());
    if count(round.done) >= needed {
        let remaining = (quorum.rules.left)(&mut round.left, needed);
        let mut records = quorum.records.lock();
        let its = records.find(&one.name, one.id, one.fence);
        let remaining = its.map_or(remaining, |record| record.lasts(sent_at, remaining));
        return Ok(RenewAnswer::Renewed { remaining });
    }
    if is_gone(&round, nodes) {
        return Ok(RenewAnswer::Gone);
    }
    Err(round.too_few(nodes).for_lock(&one.name))
}

/// Whether no majority can have the lease any more.
fn is_gone(round: &Round, nodes: usize) -> bool {
    count(round.gone) > nodes - majority(nodes)
}

/// Brings a lease to nodes that were not asked for it, where those that have it do not answer.
pub(super) async fn widen<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    name: &LockName,
    id: AcquisitionId,
    fence: Fence,
    ttl: Ttl,
    deadline: Instant,
) {
    let renewal = Renewal { name: name.clone(), id, fence, ttl, acks: Replication::NONE };
    drop(renew(quorum, slice::from_ref(&renewal), deadline).await);
}

/// What to tell a node about a lease.
fn command<N: QuorumNode>(
    quorum: &Quorum<N>,
    record: &mut Record,
    node: usize,
    ttl: Duration,
    now: Instant,
) -> NodeCommand {
    let (attempt, fence) = (record.attempt, record.last.get());
    let is_held = now < record.until && !record.is_ending;
    let had_it = (record.holding | record.barred) & bit(node) != 0;
    let word = if (quorum.rules.may_spread)(is_held, had_it) {
        record.asked |= bit(node);
        let Record { before, holds, keeps, .. } = *record;
        let label = record.label.clone();
        Word::Spread { attempt, fence, before, ttl, holds, label, keeps }
    } else {
        Word::Renew { attempt, fence, ttl }
    };
    NodeCommand { name: record.name.clone(), id: record.id, word }
}

async fn renew_at<N: QuorumNode>(
    quorum: Arc<Quorum<N>>,
    node: usize,
    commands: Vec<NodeCommand>,
    deadline: Instant,
) -> (usize, Vec<NodeReply>) {
    let nodes = &quorum.nodes;
    let sent_at = nodes.clock.now();
    let leases: Vec<_> = commands.iter().map(|one| (one.id, one.word.attempt())).collect();
    let replies = nodes.each[node].send_apart(commands, deadline).await;
    if let Some(first) = replies.first() {
        nodes.note(node, sent_at, first);
    }
    let mut records = quorum.records.lock();
    for ((id, attempt), reply) in leases.into_iter().zip(&replies) {
        if let Some(record) = records.get_mut(id).filter(|record| record.attempt == attempt) {
            match reply {
                Ok(NodeAnswer::Held { .. }) => record.holding |= bit(node),
                Ok(NodeAnswer::Gone) if record.holding & bit(node) != 0 => {
                    record.holding &= !bit(node);
                    record.barred |= bit(node);
                }
                _ => {}
            }
        }
    }
    drop(records);
    (node, replies)
}
