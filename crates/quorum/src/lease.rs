use std::{slice, sync::Arc, time::Duration};

use futures_util::stream::FuturesUnordered;
use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, Replication, StoreError, Ttl,
    store::{
        Acquire, AcquireAnswer, Hold, HoldAnswer, Next, Release, ReleaseAnswer, RenewAnswer,
        Renewal, Withdraw, WithdrawAnswer,
    },
};

use super::{
    acquire::acquire,
    failure::kept_for_too_long,
    missed::{Missed, insist_at},
    node::{NodeAnswer, NodeCommand, NodeReply, QuorumNode, Word},
    records::Record,
    round::{Round, gather, round},
    state::Quorum,
    tally::{bit, count},
};

/// Extends leases on a majority, one call for each node. A node that was not asked for a lease so
/// far is asked for its vote, so that a lease that lasts is on all nodes.
pub(super) async fn renew<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    batch: &[Renewal],
    deadline: Instant,
) -> Vec<Result<RenewAnswer, StoreError>> {
    let (sent_at, nodes) = (quorum.clock.now(), quorum.nodes.len());
    let mut for_nodes = vec![Vec::new(); nodes];
    let set_out = |one: &Renewal| {
        let mut records = quorum.records.lock();
        let record = records.find(&one.name, one.id, one.fence)?;
        for (node, commands) in for_nodes.iter_mut().enumerate() {
            commands.push(command(quorum, record, node, one.ttl.get(), sent_at));
        }
        Some(Round::new(nodes, 0))
    };
    let mut rounds: Vec<_> = batch.iter().map(set_out).collect();
    let until = deadline.min(sent_at + quorum.settings.patience());
    let sent: FuturesUnordered<_> = for_nodes
        .into_iter()
        .enumerate()
        .filter(|(_, commands)| !commands.is_empty())
        .map(|(node, commands)| renew_at(Arc::clone(quorum), node, commands, until))
        .collect();
    gather(quorum, sent, deadline, Duration::ZERO, |node, replies| {
        for (round, reply) in rounds.iter_mut().flatten().zip(replies) {
            round.on_reply(node, reply);
        }
        rounds.iter().flatten().all(|round| round.is_done() || round.is_gone())
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
    if round.is_done() {
        let remaining = (quorum.rules.left)(&mut round.left, quorum.majority());
        let mut records = quorum.records.lock();
        let its = records.find(&one.name, one.id, one.fence);
        let remaining = its.map_or(remaining, |record| record.lasts(sent_at, remaining));
        return Ok(RenewAnswer::Renewed { remaining });
    }
    if round.is_gone() {
        return Ok(RenewAnswer::Gone);
    }
    Err(round.too_few().for_lock(&one.name))
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
    let sent_at = quorum.clock.now();
    let leases: Vec<_> = commands.iter().map(|one| (one.id, one.word.attempt())).collect();
    let replies = quorum.nodes[node].send_apart(commands, deadline).await;
    if let Some(first) = replies.first() {
        quorum.note(node, sent_at, first);
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

/// Sets the number of holds of a lease, and extends it.
pub(super) async fn hold<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Hold { name, id, fence, update, ttl, acks }: Hold,
    deadline: Instant,
) -> Result<HoldAnswer, StoreError> {
    quorum.check(ttl, acks)?;
    match quorum.records.lock().find(&name, id, fence) {
        Some(record) => record.hold(update),
        None => return Ok(HoldAnswer::Gone),
    }
    let sent_at = quorum.clock.now();
    let word = |attempt| Word::Hold { attempt, update, ttl };
    let lease = (&name, id, fence);
    let Some((_, mut round)) = twice(quorum, lease, ttl, (word, false), deadline).await? else {
        return Ok(HoldAnswer::Gone);
    };
    let remaining = round.remaining();
    if let Some(record) = quorum.records.lock().find(&name, id, fence) {
        record.lasts(sent_at, remaining);
    }
    Ok(HoldAnswer::Held { remaining })
}

/// Ends a lease, or keeps its lock closed for a while, and asks for the next acquisition of its runtime.
pub(super) async fn release<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    command: Release,
    deadline: Instant,
) -> Result<ReleaseAnswer, StoreError> {
    if let Some(rest) = command.keep_in_range() {
        return keep(quorum, &command, rest, deadline).await;
    }
    let ended = end(quorum, &command, deadline).await?;
    // Every field by its name: a new one is not forgotten silently.
    let Release { name, id: _, fence: _, keep: _, next: Some(next) } = command else {
        return Ok(ended);
    };
    let Next { id, mode, ttl, watermark, label, keeps, heartbeat } = next;
    let (wait, acks) = (Some(heartbeat), Replication::NONE);
    let command = Acquire { name, id, mode, ttl, watermark, label, keeps, wait, acks };
    match acquire(quorum, command, heartbeat.window(ttl), false, deadline).await {
        Ok(AcquireAnswer::Granted(granted)) => Ok(ReleaseAnswer::NextGranted(granted)),
        Ok(AcquireAnswer::Queued(place)) => Ok(ReleaseAnswer::NextQueued(place)),
        Err(error) if error.kind().is_transient() => Err(error),
        // The lease has ended, whatever is wrong with the next one: that is told when it asks again.
        Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn) | Err(_) => Ok(ended),
    }
}

/// Ends a lease: it is over when a majority is free of it.
async fn end<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Release { name, id, fence, keep: _, next: _ }: &Release,
    deadline: Instant,
) -> Result<ReleaseAnswer, StoreError> {
    quorum.claims.end(*id);
    let record = quorum.records.lock().find(name, *id, *fence).map(|record| {
        // From now on it is not spread to further nodes.
        record.is_ending = true;
        record.clone()
    });
    let (asked, ended_before, barred) = match &record {
        Some(record) => (record.asked, record.ended, record.barred),
        None => (quorum.all(), 0, 0),
    };
    let unknown = || {
        let word = Word::End { attempt: 0, fence: fence.get(), marks: false };
        NodeCommand { name: name.clone(), id: *id, word }
    };
    let command = |node| record.as_ref().map_or_else(unknown, |record| record.end(node));
    if record.as_ref().is_some_and(|record| record.has_waited) {
        // Its places there are in the way of those who wait. Nobody waits for that.
        quorum.tell(quorum.all() & !asked, command, deadline);
    }
    let mut round = round(quorum, asked & !ended_before, command, deadline, Round::is_heard).await;
    if count(round.kept) >= quorum.majority() {
        return Ok(ReleaseAnswer::Kept { remaining: round.remaining() });
    }
    let ended = ended_before | round.done;
    if !round.is_heard() {
        if let Some(record) = quorum.records.lock().find(name, *id, *fence) {
            record.ended |= ended;
        }
        return Err(round.too_few());
    }
    let silent = asked & !(ended | round.gone);
    if let Some(Record { until, .. }) = record {
        quorum.records.lock().remove(*id);
        insist_at(quorum, silent, |node| Missed { end: command(node), closed_until: None, until });
    }
    // A node that told a renewal that the lease is gone has not ended it now.
    let had_it = count(ended | silent & !barred) >= quorum.majority() && ended != 0;
    Ok(if had_it { ReleaseAnswer::Released } else { ReleaseAnswer::Gone })
}

/// Keeps a lock closed for exactly a time, in place of its lease.
async fn keep<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Release { name, id, fence, keep: _, next: _ }: &Release,
    rest: Duration,
    deadline: Instant,
) -> Result<ReleaseAnswer, StoreError> {
    let longest = quorum.settings.most_ttl();
    if rest > longest {
        return Err(kept_for_too_long(rest, longest));
    }
    let closed_until = Some(quorum.clock.now() + rest);
    // Where this process does not know the lease, its fence says which one is meant.
    let word = |attempt| {
        let fence = if attempt == 0 { fence.get() } else { 0 };
        Word::Keep { attempt, fence, rest }
    };
    let (lease, ttl) = ((name, *id, *fence), quorum.settings.usual_ttl());
    let kept = twice(quorum, lease, ttl, (word, true), deadline).await?;
    quorum.records.lock().remove(*id);
    let Some((record, mut round)) = kept else { return Ok(ReleaseAnswer::Gone) };
    if let Some(record) = record {
        if record.has_waited {
            quorum.tell(quorum.all() & !record.asked, |node| record.end(node), deadline);
        }
        let until = record.until;
        let missed = |node| Missed { end: record.end(node), closed_until, until };
        insist_at(quorum, record.asked & !round.heard(), missed);
    }
    Ok(ReleaseAnswer::Kept { remaining: round.remaining() })
}

/// Sends a command to the nodes of a lease. If fewer than a majority do it, the lease is brought to other nodes,
/// and it is sent once more. Returns `None` if a majority does not have the lease.
///
/// With `closes`, the command keeps the lock closed in place of its lease. Then the lease may be unknown to this
/// process. If no node has it, and a majority says so, it is not brought to another one, which would be closed.
async fn twice<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    (name, id, fence): (&LockName, AcquisitionId, Fence),
    ttl: Ttl,
    (word, closes): (impl Fn(u64) -> Word, bool),
    deadline: Instant,
) -> Result<Option<(Option<Record>, Round)>, StoreError> {
    let mut is_second = false;
    loop {
        let record = quorum.records.lock().find(name, id, fence).cloned();
        let (to, attempt) = match &record {
            Some(record) => (record.asked, record.attempt),
            None if closes => (quorum.all(), 0),
            // It was released or withdrawn meanwhile.
            None => return Ok(None),
        };
        let command = NodeCommand { name: name.clone(), id, word: word(attempt) };
        let round = round(quorum, to, |_| command.clone(), deadline, Round::is_done).await;
        if round.is_done() {
            return Ok(Some((record, round)));
        }
        let is_gone = round.is_gone();
        if is_second || record.is_none() || closes && is_gone && round.done == 0 {
            return if is_gone { Ok(None) } else { Err(round.too_few()) };
        }
        // A renewal brings it to nodes that were not asked for it. Whether it came there is seen by the second time.
        let renewal = Renewal { name: name.clone(), id, fence, ttl, acks: Replication::NONE };
        drop(renew(quorum, slice::from_ref(&renewal), deadline).await);
        is_second = true;
    }
}

/// Takes an acquisition back: its places, and its lease if it has one.
pub(super) async fn withdraw<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Withdraw { name, id }: Withdraw,
    deadline: Instant,
) -> Result<WithdrawAnswer, StoreError> {
    quorum.claims.end(id);
    let until = quorum.records.lock().get_mut(id).map(|record| {
        record.is_ending = true;
        record.until
    });
    let command = |_| NodeCommand { name: name.clone(), id, word: Word::Withdraw };
    let round = round(quorum, quorum.all(), command, deadline, Round::is_heard).await;
    if !round.is_heard() {
        return Err(round.too_few());
    }
    if let Some(until) = until {
        quorum.records.lock().remove(id);
        let missed = |node| Missed { end: command(node), closed_until: None, until };
        insist_at(quorum, quorum.all() & !round.heard(), missed);
    }
    Ok(WithdrawAnswer { ended_grant: round.done != 0 })
}
