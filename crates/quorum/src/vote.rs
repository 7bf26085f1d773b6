use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use leasehold_core::{
    Fence, Instant, StoreError, StoreErrorKind,
    store::{Acquire, Granted},
};
use tokio::select;

use super::{
    claims::{Candidate, Claim},
    failure::too_few,
    missed::take_back,
    node::{NodeCommand, QuorumNode, Vote, Word},
    records::Record,
    round::{Round, round},
    state::Quorum,
    tally::{Decision, FenceVerdict, NodeSet, Refusal, VoteCount, bit, block, propose},
};

/// How one try to get a majority of the votes ended.
pub(super) enum VoteOutcome {
    Granted(Granted),
    /// Others have it, or stand before.
    Refused(Refusal),
    /// Others asked at the same time, and nobody has a majority.
    Split(Refusal),
    Withdrawn,
}

/// A try under way: dropped before it is granted, it is taken back wherever it may have come to.
struct VoteAttempt<'a, N: QuorumNode> {
    quorum: &'a Arc<Quorum<N>>,
    candidate: &'a Candidate,
    /// For how long it has been asked for.
    waited: Duration,
    number: u64,
    /// The fence that it proposes.
    ballot: u64,
    /// Whether one node is asked before all: so those who ask for a lock do not split the nodes between them.
    one_first: bool,
    votes: VoteCount,
    /// Why nodes have no vote.
    failures: Vec<StoreError>,
    is_granted: bool,
}

/// Asks the nodes once.
// ADR 0037
pub(super) async fn vote<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    claim: &Claim,
    candidate: &Candidate,
    one_first: bool,
    deadline: Instant,
) -> Result<VoteOutcome, StoreError> {
    let (sent_at, nodes) = (quorum.clock.now(), quorum.nodes.len());
    let micros = quorum.micros(&candidate.command.name);
    let (seen, ballot) = propose(candidate.command.watermark, micros);
    let mut attempt = VoteAttempt {
        quorum,
        candidate,
        waited: claim.asked_for(sent_at),
        number: (quorum.rules.attempt)(quorum.attempts.fetch_add(1, Ordering::Relaxed)),
        ballot,
        one_first,
        votes: VoteCount::new(nodes),
        failures: Vec::new(),
        is_granted: false,
    };
    let decision = attempt.ask(deadline).await;
    let refusal = attempt.votes.refusal();
    match decision {
        Decision::Granted => settle(attempt, claim, seen, (sent_at, deadline)).await,
        Decision::Taken => Ok(VoteOutcome::Refused(refusal)),
        Decision::Split => Ok(VoteOutcome::Split(refusal)),
        Decision::Withdrawn => Ok(VoteOutcome::Withdrawn),
        Decision::TooFew | Decision::Open => {
            let failures = &attempt.failures;
            let may_have_run = attempt.votes.granted() != 0
                || failures.iter().any(|error| error.kind() != StoreErrorKind::Definite);
            Err(too_few(failures.len(), nodes, failures, may_have_run))
        }
    }
}

impl<N: QuorumNode> VoteAttempt<'_, N> {
    /// Asks a majority, and others in place of those that refuse, fail, or take long.
    async fn ask(&mut self, deadline: Instant) -> Decision {
        let quorum = self.quorum;
        let order = quorum.order(&self.candidate.command.name);
        let mut unasked = order.iter();
        let mut sent = FuturesUnordered::new();
        let (mut hedges, mut is_late) = (0, false);
        let mut hedge_at = quorum.clock.now();
        loop {
            match (quorum.rules.decision)(&self.votes) {
                // All are asked, and another one would be by now: who hangs decides nothing.
                Decision::Open if is_late && self.votes.majority_answered() => {
                    return Decision::Split;
                }
                Decision::Open => {}
                decision => return decision,
            }
            let is_alone = self.one_first && self.votes.granted() == 0;
            let hopes = if is_alone { 1 } else { quorum.majority() };
            while self.votes.hopeful() < hopes + hedges
                && let Some(node) = unasked.next()
            {
                let node = (quorum.rules.whom)(*node, order[0]);
                self.votes.on_ask(node);
                sent.push(quorum.send(node, self.command(), deadline));
                hedge_at = quorum.clock.now() + quorum.hedge();
            }
            select! {
                biased;
                reply = sent.next() => {
                    let Some((node, reply)) = reply else { return Decision::TooFew };
                    self.failures.extend(quorum.failure(node, &reply));
                    self.votes.on_answer(node, reply.as_ref().ok());
                }
                () = quorum.clock.sleep_until(hedge_at), if !is_late => {
                    hedges += 1;
                    is_late = unasked.len() == 0;
                }
            }
        }
    }

    /// The fence of a lease that a majority granted, the nodes that have it, and how long they keep it; `None` if
    /// they are no majority.
    async fn agree(
        &self,
        least: u64,
        deadline: Instant,
    ) -> Result<Option<(u64, NodeSet, Vec<Duration>)>, StoreError> {
        let (quorum, votes) = (self.quorum, &self.votes);
        match (quorum.rules.fence)(votes, quorum.nodes.len(), self.ballot, least) {
            FenceVerdict::Accepted { by } => {
                let left = votes.votes(by).map(|(_, vote)| vote.remaining).collect();
                Ok(Some((self.ballot, by, left)))
            }
            FenceVerdict::ToSettle { fence } if fence > Fence::MAX => Err(StoreError::exhausted()),
            FenceVerdict::ToSettle { fence } => {
                let Acquire { ref name, id, .. } = self.candidate.command;
                let word = Word::Settle { attempt: self.number, fence };
                let command = NodeCommand { name: name.clone(), id, word };
                let (to, command) = (votes.granted(), |_| command.clone());
                let round = round(quorum, to, command, deadline, Round::is_done).await;
                Ok(round.is_done().then_some((fence, round.done, round.left)))
            }
        }
    }

    fn command(&self) -> NodeCommand {
        let Candidate { command: Acquire { name, id, label, keeps, .. }, life } = self.candidate;
        let word = Word::Ask {
            attempt: self.number,
            ballot: self.ballot,
            ttl: *life,
            // A node that has forgotten the place, or never knew it, puts it where the others have it.
            waited: self.waited,
            heard: self.candidate.heard(),
            label: label.clone(),
            keeps: *keeps,
        };
        NodeCommand { name: name.clone(), id: *id, word }
    }
}

/// Gives a lease that a majority granted its fence; `seen` is the greatest token that its runtime has seen.
async fn settle<N: QuorumNode>(
    mut attempt: VoteAttempt<'_, N>,
    claim: &Claim,
    seen: u64,
    (sent_at, deadline): (Instant, Instant),
) -> Result<VoteOutcome, StoreError> {
    let (quorum, votes) = (attempt.quorum, &attempt.votes);
    let Acquire { ref name, id, ref label, keeps, .. } = attempt.candidate.command;
    let Some((fence, by, mut left)) = attempt.agree(seen + 1, deadline).await? else {
        return Ok(VoteOutcome::Split(Refusal::soon()));
    };
    let its_votes = || votes.votes(by).map(|(_, vote)| vote);
    let contended = its_votes().any(|vote: Vote| vote.contended);
    let block = block(its_votes(), fence, seen);
    let token = |number| Fence::try_from(number).map_err(|_| StoreError::exhausted());
    let (first, last) = (token(block.first)?, token(block.last)?);
    let remaining = (quorum.rules.left)(&mut left, quorum.majority());
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

impl<N: QuorumNode> Drop for VoteAttempt<'_, N> {
    fn drop(&mut self) {
        if self.is_granted || !self.quorum.rules.takes_back {
            return;
        }
        let Acquire { name, id, .. } = &self.candidate.command;
        let granted = self.votes.granted();
        take_back(self.quorum, granted | self.votes.unheard(), |node| {
            let marks = granted & bit(node) == 0;
            let word = Word::End { attempt: self.number, fence: 0, marks };
            NodeCommand { name: name.clone(), id: *id, word }
        });
    }
}
