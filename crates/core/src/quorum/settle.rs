use super::{
    ballot::{self, Fence},
    claims::Claim,
    command::{NodeCommand, Vote, Word},
    node::QuorumNode,
    records::Record,
    round::{Round, round},
    tally::{Refusal, count},
    vote::{VoteAttempt, VoteOutcome},
};
use crate::{
    clock::Instant,
    store::{Acquire, Granted, StoreError},
    types::FenceToken,
};

/// Gives a lease that a majority granted its fence; `seen` is the greatest token that its runtime has seen.
pub(super) async fn settle<N: QuorumNode>(
    mut attempt: VoteAttempt<'_, N>,
    claim: &Claim,
    seen: u64,
    (sent_at, deadline): (Instant, Instant),
) -> Result<VoteOutcome, StoreError> {
    let (quorum, votes) = (attempt.quorum, &attempt.votes);
    let (nodes, needed) = (&quorum.nodes, quorum.nodes.majority());
    let Acquire { ref name, id, ref label, keeps, .. } = attempt.candidate.command;
    let (by, fence, mut left) =
        match (quorum.rules.fence)(votes, nodes.count(), attempt.ballot, seen + 1) {
            Fence::Accepted { by } => {
                let left = votes.votes(by).map(|(_, vote)| vote.remaining).collect();
                (by, attempt.ballot, left)
            }
            Fence::ToSettle { fence } if fence > FenceToken::MAX => {
                return Err(StoreError::exhausted());
            }
            Fence::ToSettle { fence } => {
                let word = Word::Settle { attempt: attempt.number, fence };
                let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
                let enough = |round: &Round| count(round.done) >= needed;
                let round = round(nodes, votes.granted(), make, deadline, enough).await;
                if !enough(&round) {
                    return Ok(VoteOutcome::Split(Refusal::soon()));
                }
                (round.done, fence, round.left)
            }
        };
    let its_votes = || votes.votes(by).map(|(_, vote)| vote);
    let contended = its_votes().any(|vote: Vote| vote.contended);
    let block = ballot::block(its_votes(), fence, seen);
    let token = |number| FenceToken::try_from(number).map_err(|_| StoreError::exhausted());
    let (first, last) = (token(block.first)?, token(block.last)?);
    let remaining = (quorum.rules.left)(&mut left, needed);
    let record = Record {
        name: name.clone(),
        id,
        attempt: attempt.number,
        first,
        last,
        before: block.first - 1,
        asked: votes.granted() | votes.unheard(),
        has_waited: attempt.candidate.waits() && (attempt.one_first || votes.busy() != 0),
        holding: by,
        barred: 0,
        ended: 0,
        is_ending: false,
        label: label.clone(),
        keeps,
        holds: None,
        until: sent_at + remaining,
    };
    let mut records = quorum.records.lock();
    // Asked under the lock: a release that finds no record has said before that it is over.
    if claim.is_over() {
        return Ok(VoteOutcome::Withdrawn);
    }
    records.insert(record, sent_at);
    drop(records);
    attempt.is_granted = true;
    let regressed = block.regressed;
    Ok(VoteOutcome::Granted(Granted { first, last, remaining, contended, regressed }))
}
