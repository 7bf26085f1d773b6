use std::sync::Arc;

use leasehold_core::{
    Instant, LockName, Replication, StoreError,
    store::{Acquire, AcquireAnswer, Next, Release, ReleaseAnswer, Withdraw, WithdrawAnswer},
};

use super::{
    acquire::acquire,
    command::{NodeCommand, Word},
    hold::keep,
    missed::{Missed, insist_at},
    node::QuorumNode,
    round::{Round, round},
    state::Quorum,
    tally::{count, kth_longest},
};

pub(super) async fn release<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    command: Release,
    deadline: Instant,
) -> Result<ReleaseAnswer, StoreError> {
    if let Some(rest) = command.keep_in_range() {
        return keep(quorum, &command, rest, deadline).await;
    }
    let ended = end(quorum, &command, deadline).await?;
    let Release { name, next: Some(next), .. } = command else { return Ok(ended) };
    acquire_next(quorum, name, next, ended, deadline).await
}

/// Ends a lease: it is over when a majority is free of it.
async fn end<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Release { name, id, fence, .. }: &Release,
    deadline: Instant,
) -> Result<ReleaseAnswer, StoreError> {
    let (nodes, needed) = (&quorum.nodes, quorum.nodes.majority());
    quorum.claims.end(*id);
    let record = quorum.records.lock().find(name, *id, *fence).map(|record| {
        // From now on it is not spread to further nodes.
        record.is_ending = true;
        record.clone()
    });
    let (asked, ended_before) = match &record {
        Some(record) => (record.asked, record.ended),
        None => (nodes.all(), 0),
    };
    let elsewhere = nodes.all() & !asked;
    let unknown = || {
        let word = Word::End { attempt: 0, fence: fence.get(), marks: false };
        NodeCommand { name: name.clone(), id: *id, word }
    };
    let make = |node| record.as_ref().map_or_else(unknown, |record| record.end(node));
    if record.as_ref().is_some_and(|record| record.has_waited) {
        // Its places there are in the way of those who wait. Nobody waits for that.
        nodes.tell(elsewhere, make, deadline);
    }
    let enough = |round: &Round| count(round.heard() | ended_before | elsewhere) >= needed;
    let mut round = round(nodes, asked & !ended_before, make, deadline, enough).await;
    if count(round.kept) >= needed {
        let remaining = kth_longest(&mut round.left, needed);
        return Ok(ReleaseAnswer::Kept { remaining });
    }
    let ended = ended_before | round.done;
    if !enough(&round) {
        if let Some(record) = quorum.records.lock().find(name, *id, *fence) {
            record.ended |= ended;
        }
        return Err(round.too_few(nodes.count()));
    }
    let silent = asked & !(ended | round.gone);
    if let Some(record) = &record {
        quorum.records.lock().remove(*id);
        let until = record.until;
        insist_at(nodes, silent, |node| Missed { end: make(node), closed_until: None, until });
    }
    // A node that told a renewal that the lease is gone has not ended it now.
    let barred = record.as_ref().map_or(0, |record| record.barred);
    let had_it = count(ended | silent & !barred) >= needed && ended != 0;
    Ok(if had_it { ReleaseAnswer::Released } else { ReleaseAnswer::Gone })
}

/// Asks for the next acquisition of a runtime whose turn is over.
async fn acquire_next<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    name: LockName,
    Next { id, ttl, watermark, label, keeps, heartbeat }: Next,
    ended: ReleaseAnswer,
    deadline: Instant,
) -> Result<ReleaseAnswer, StoreError> {
    let (wait, acks) = (Some(heartbeat), Replication::NONE);
    let command = Acquire { name, id, ttl, watermark, label, keeps, wait, acks };
    match acquire(quorum, command, (heartbeat.window(ttl), false), deadline).await {
        Ok(AcquireAnswer::Granted(granted)) => Ok(ReleaseAnswer::NextGranted(granted)),
        Ok(AcquireAnswer::Queued(place)) => Ok(ReleaseAnswer::NextQueued(place)),
        Err(error) if error.kind().is_transient() => Err(error),
        // The lease has ended, whatever is wrong with the next one: that is told when it asks again.
        Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn) | Err(_) => Ok(ended),
    }
}

pub(super) async fn withdraw<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Withdraw { name, id }: Withdraw,
    deadline: Instant,
) -> Result<WithdrawAnswer, StoreError> {
    let (nodes, needed) = (&quorum.nodes, quorum.nodes.majority());
    quorum.claims.end(id);
    let until = quorum.records.lock().get_mut(id).map(|record| {
        record.is_ending = true;
        record.until
    });
    let make = |_| NodeCommand { name: name.clone(), id, word: Word::Withdraw };
    let enough = |round: &Round| count(round.heard()) >= needed;
    let round = round(nodes, nodes.all(), make, deadline, enough).await;
    if !enough(&round) {
        return Err(round.too_few(nodes.count()));
    }
    if let Some(until) = until {
        quorum.records.lock().remove(id);
        let missed = |node| Missed { end: make(node), closed_until: None, until };
        insist_at(nodes, nodes.all() & !round.heard(), missed);
    }
    Ok(WithdrawAnswer { ended_grant: round.done != 0 })
}
