use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::select;

use super::{
    ballot::{ballot, seen},
    claims::{Candidate, Claim},
    command::{NodeCommand, Word},
    failure::too_few,
    missed::take_back,
    node::QuorumNode,
    settle::settle,
    state::Quorum,
    tally::{Decision, Refusal, VoteCount, bit},
};
use crate::{
    clock::Instant,
    store::{Acquire, Granted, StoreError},
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
pub(super) struct VoteAttempt<'a, N: QuorumNode> {
    pub(super) quorum: &'a Arc<Quorum<N>>,
    pub(super) candidate: &'a Candidate,
    pub(super) number: u64,
    /// The fence that it proposes.
    pub(super) ballot: u64,
    /// Whether one node is asked before all: so those who ask for a lock do not split the nodes between them.
    pub(super) one_first: bool,
    pub(super) votes: VoteCount,
    pub(super) is_granted: bool,
}

/// Asks the nodes once.
pub(super) async fn vote<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    claim: &Claim,
    candidate: &Candidate,
    one_first: bool,
    deadline: Instant,
) -> Result<VoteOutcome, StoreError> {
    let nodes = &quorum.nodes;
    let sent_at = nodes.clock.now();
    let micros = nodes.micros(&candidate.command.name);
    let seen = seen(candidate.command.watermark, micros);
    let mut attempt = VoteAttempt {
        quorum,
        candidate,
        number: quorum.next_attempt(),
        ballot: ballot(seen, micros),
        one_first,
        votes: VoteCount::new(nodes.count()),
        is_granted: false,
    };
    let mut failures = Vec::new();
    let decision = attempt.ask(deadline, &mut failures).await;
    let refusal = attempt.votes.refusal();
    match decision {
        Decision::Granted => settle(attempt, claim, seen, (sent_at, deadline)).await,
        Decision::Taken => Ok(VoteOutcome::Refused(refusal)),
        Decision::Split => Ok(VoteOutcome::Split(refusal)),
        Decision::Withdrawn => Ok(VoteOutcome::Withdrawn),
        Decision::TooFew | Decision::Open => {
            let answered = nodes.count().saturating_sub(failures.len());
            let may_have_run =
                attempt.votes.granted() != 0 || failures.iter().any(|error| !error.is_definite());
            Err(too_few(answered, nodes.count(), &failures, may_have_run))
        }
    }
}

impl<N: QuorumNode> VoteAttempt<'_, N> {
    /// Asks a majority, and others in place of those that refuse, fail, or take long.
    async fn ask(&mut self, deadline: Instant, failures: &mut Vec<StoreError>) -> Decision {
        let (quorum, nodes) = (self.quorum, &self.quorum.nodes);
        let order = nodes.order(&self.candidate.command.name);
        let mut unasked = order.iter();
        let mut sent = FuturesUnordered::new();
        let (mut hedges, mut is_late) = (0, false);
        let mut timer = nodes.clock.sleep_until(deadline);
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
            let hopes = if is_alone { 1 } else { nodes.majority() };
            while self.votes.hopeful() < hopes + hedges
                && let Some(node) = unasked.next()
            {
                let node = (quorum.rules.whom)(*node, order[0]);
                self.votes.on_ask(node);
                sent.push(nodes.send(node, self.command(), deadline));
                timer = nodes.clock.sleep_until(nodes.clock.now() + nodes.hedge());
            }
            select! {
                biased;
                answer = sent.next() => {
                    let Some((node, answer)) = answer else { return Decision::TooFew };
                    failures.extend(nodes.failure(node, &answer));
                    self.votes.on_answer(node, answer.as_ref().ok());
                }
                () = &mut timer, if !is_late => {
                    hedges += 1;
                    is_late = unasked.len() == 0;
                }
            }
        }
    }

    fn command(&self) -> NodeCommand {
        let Candidate { command: Acquire { name, id, label, keeps, .. }, life, waited } =
            self.candidate;
        let word = Word::Ask {
            attempt: self.number,
            ballot: self.ballot,
            ttl: *life,
            // A node that has forgotten the place, or never knew it, is told for how long the others know it.
            waited: self.votes.refusal().waited.max(*waited),
            heard: self.candidate.heard(),
            label: label.clone(),
            keeps: *keeps,
        };
        NodeCommand { name: name.clone(), id: *id, word }
    }
}

impl<N: QuorumNode> Drop for VoteAttempt<'_, N> {
    fn drop(&mut self) {
        if self.is_granted || !self.quorum.rules.takes_back {
            return;
        }
        let Acquire { name, id, .. } = &self.candidate.command;
        let granted = self.votes.granted();
        take_back(&self.quorum.nodes, granted | self.votes.unheard(), |node| {
            let marks = granted & bit(node) == 0;
            let word = Word::End { attempt: self.number, fence: 0, marks };
            NodeCommand { name: name.clone(), id: *id, word }
        });
    }
}
