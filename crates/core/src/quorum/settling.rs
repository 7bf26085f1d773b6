use std::sync::Arc;

use super::{
    attempt::{Asked, Asking, Taken, Tried},
    ballot::{self, Block, Fence},
    command::{NodeCommand, Vote, Word},
    node::QuorumNode,
    record::Record,
    round::Round,
    store::Inner,
    taking_back::TakeBack,
    tally::{count, majority},
    under_way::SetOut,
};
use crate::{
    clock::Instant,
    store::{Granted, StoreError},
    types::FenceToken,
};

impl<N: QuorumNode> Inner<N> {
    /// Gives a lease that a majority granted its fence.
    pub(crate) async fn settle(
        self: &Arc<Self>,
        turn: &SetOut<N>,
        asking: &Asking,
        mut flying: TakeBack<N>,
        (ballot, seen): (u64, u64),
        (sent_at, deadline): (Instant, Instant),
    ) -> Result<Tried, StoreError> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let tally = &flying.tally;
        let (by, fence, mut left) = match (self.rules.fence)(tally, nodes, ballot, seen + 1) {
            Fence::Accepted { by } => {
                let left: Vec<_> = tally.votes(by).map(|(_, vote)| vote.remaining).collect();
                (by, ballot, left)
            }
            Fence::ToSettle { fence } if fence > FenceToken::MAX => {
                return Err(StoreError::exhausted().for_lock(&asking.name));
            }
            Fence::ToSettle { fence } => {
                let (name, id) = (&flying.name, flying.id);
                let word = Word::Settle { attempt: flying.attempt, fence };
                let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
                let enough = |round: &Round| count(round.done) >= needed;
                let round = self.round(tally.granted(), make, deadline, enough).await;
                if !enough(&round) {
                    return Ok(Tried::Split(Taken::soon()));
                }
                (round.done, fence, round.left)
            }
        };
        let votes = || flying.tally.votes(by).map(|(_, vote)| vote);
        let contended = votes().any(|vote: Vote| vote.contended);
        let block = ballot::block(votes(), fence, seen);
        let token = |number| FenceToken::try_from(number).map_err(|_| StoreError::exhausted());
        let (first, last) = (token(block.first)?, token(block.last)?);
        let remaining = (self.rules.left)(&mut left, needed);
        let record = Record {
            name: asking.name.clone(),
            attempt: flying.attempt,
            first,
            last,
            before: block.first - 1,
            asked: flying.tally.granted() | flying.tally.unheard(),
            has_waited: flying.has_waited || asking.waits() && flying.tally.busy() != 0,
            holding: by,
            barred: 0,
            ended: 0,
            is_ending: false,
            label: asking.label.clone(),
            keeps: asking.keeps,
            holds: None,
            until: sent_at + remaining,
        };
        let mut records = self.records.lock();
        if turn.is_over() {
            return Ok(Tried::Over(Asked::Withdrawn));
        }
        flying.is_done = true;
        records.insert(asking.id, record, sent_at);
        drop(records);
        let Block { regressed, .. } = block;
        Ok(Tried::Over(Asked::Granted(Granted { first, last, remaining, contended, regressed })))
    }
}
