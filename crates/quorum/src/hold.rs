use std::{sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, StoreError, Ttl,
    store::{Hold, HoldAnswer, Release, ReleaseAnswer},
};

use super::{
    command::{NodeCommand, Word},
    failure::kept_for_too_long,
    missed::{Missed, insist_at},
    node::QuorumNode,
    records::Record,
    renew::widen,
    round::{Round, round},
    state::Quorum,
    tally::{count, kth_longest},
};

pub(super) async fn hold<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Hold { name, id, fence, update, ttl, acks }: Hold,
    deadline: Instant,
) -> Result<HoldAnswer, StoreError> {
    quorum.nodes.check(ttl, acks)?;
    match quorum.records.lock().find(&name, id, fence) {
        Some(record) => record.hold(update),
        None => return Ok(HoldAnswer::Gone),
    }
    let sent_at = quorum.nodes.clock.now();
    let word = |attempt| Word::Hold { attempt, update, ttl };
    let lease = (&name, id, fence);
    let Some((_, mut round)) = twice(quorum, lease, ttl, (word, false), deadline).await? else {
        return Ok(HoldAnswer::Gone);
    };
    let remaining = kth_longest(&mut round.left, quorum.nodes.majority());
    if let Some(record) = quorum.records.lock().find(&name, id, fence) {
        record.lasts(sent_at, remaining);
    }
    Ok(HoldAnswer::Held { remaining })
}

/// Keeps a lock closed for exactly a time, in place of its lease.
pub(super) async fn keep<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    Release { name, id, fence, .. }: &Release,
    rest: Duration,
    deadline: Instant,
) -> Result<ReleaseAnswer, StoreError> {
    let (nodes, longest) = (&quorum.nodes, quorum.nodes.settings.most_ttl());
    if rest > longest {
        return Err(kept_for_too_long(rest, longest));
    }
    let closed_until = Some(nodes.clock.now() + rest);
    // Where this process does not know the lease, its fence says which one is meant.
    let word = |attempt| {
        let fence = if attempt == 0 { fence.get() } else { 0 };
        Word::Keep { attempt, fence, rest }
    };
    let (lease, ttl) = ((name, *id, *fence), nodes.settings.usual_ttl());
    let kept = twice(quorum, lease, ttl, (word, true), deadline).await?;
    quorum.records.lock().remove(*id);
    let Some((record, mut round)) = kept else { return Ok(ReleaseAnswer::Gone) };
    if let Some(record) = record {
        let end = |node| record.end(node);
        if record.has_waited {
            nodes.tell(nodes.all() & !record.asked, end, deadline);
        }
        let until = record.until;
        let missed = |node| Missed { end: end(node), closed_until, until };
        insist_at(nodes, record.asked & !round.heard(), missed);
    }
    let remaining = kth_longest(&mut round.left, nodes.majority());
    Ok(ReleaseAnswer::Kept { remaining })
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
    let (nodes, needed) = (&quorum.nodes, quorum.nodes.majority());
    let mut is_second = false;
    loop {
        let record = quorum.records.lock().find(name, id, fence).cloned();
        let (to, attempt) = match &record {
            Some(record) => (record.asked, record.attempt),
            None if closes => (nodes.all(), 0),
            // It was released or withdrawn meanwhile.
            None => return Ok(None),
        };
        let make = |_| NodeCommand { name: name.clone(), id, word: word(attempt) };
        let enough = |round: &Round| count(round.done) >= needed;
        let round = round(nodes, to, make, deadline, enough).await;
        if enough(&round) {
            return Ok(Some((record, round)));
        }
        let is_gone = count(round.gone | (nodes.all() & !to)) >= needed;
        if is_second || record.is_none() || closes && is_gone && round.done == 0 {
            return if is_gone { Ok(None) } else { Err(round.too_few(nodes.count())) };
        }
        // Whether it came to others is seen by the second time.
        widen(quorum, name, id, fence, ttl, deadline).await;
        is_second = true;
    }
}
