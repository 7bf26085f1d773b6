use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::select;

use super::{
    ballot::{ballot, seen},
    command::{NodeCommand, Word},
    failure::too_few,
    health::{hedge, order},
    node::QuorumNode,
    store::Inner,
    taking_back::TakeBack,
    tally::{Tally, Verdict, majority},
    under_way::SetOut,
};
use crate::{
    backoff::backoff,
    clock::Instant,
    store::{Granted, StoreError},
    types::{AcquisitionId, FenceToken, LockName, RuntimeLabel},
};

/// What an acquisition asks the nodes for.
#[derive(Debug, Clone)]
pub(crate) struct Asking {
    pub(crate) name: LockName,
    pub(crate) id: AcquisitionId,
    /// How long the lease is to live.
    pub(crate) life: Duration,
    pub(crate) watermark: Option<FenceToken>,
    pub(crate) label: RuntimeLabel,
    pub(crate) keeps: bool,
    /// For how long nodes have seen it wait.
    pub(crate) waited: Duration,
    /// For how long nodes remember that it waits; zero if it does not.
    pub(crate) heard: Duration,
}

impl Asking {
    /// Whether it waits.
    pub(crate) fn waits(&self) -> bool {
        !self.heard.is_zero()
    }
}

/// How a request for a lock ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    Granted(Granted),
    /// Others have it, or stand before.
    Taken(Taken),
    Withdrawn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) remaining: Duration,
    pub(crate) keeps: bool,
    pub(crate) older: u64,
    /// For how long nodes have seen the one that asks wait.
    pub(crate) waited: Duration,
}

impl Taken {
    /// It is unknown who has it; another try may have it soon.
    pub(crate) fn soon() -> Self {
        Self { remaining: SHORTEST_STEP, keeps: false, older: 0, waited: Duration::ZERO }
    }
}

/// How one try ended.
pub(crate) enum Tried {
    Over(Asked),
    /// Others asked at the same time, and nobody has a majority.
    Split(Taken),
}

/// How often an acquisition that met others steps back and tries again.
const TRIES: u32 = 4;

/// How long it steps back.
pub(crate) const SHORTEST_STEP: Duration = Duration::from_millis(2);
const LONGEST_STEP: Duration = Duration::from_millis(20);

impl<N: QuorumNode> Inner<N> {
    /// Asks the nodes until a majority has decided. No other call for the same acquisition does so
    /// meanwhile: it is its turn. `micros` is the time for its ballot.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        turn: &SetOut<N>,
        asking: &Asking,
        is_contended: bool,
        mut micros: u64,
        deadline: Instant,
    ) -> Result<Asked, StoreError> {
        let (mut steps, mut waited) = (0, asking.waited);
        loop {
            if turn.is_over() {
                return Ok(Asked::Withdrawn);
            }
            let one_first = is_contended || steps > 0;
            let trying = self.try_once(turn, asking, (one_first, waited), micros, deadline);
            let taken = match trying.await? {
                Tried::Over(asked) => return Ok(asked),
                Tried::Split(taken) => taken,
            };
            waited = waited.max(taken.waited);
            // Who stands behind others leaves them the first step.
            let behind = u32::try_from(taken.older.min(3)).unwrap_or(3);
            let pause =
                backoff(SHORTEST_STEP, LONGEST_STEP, steps + behind, self.entropy.fraction());
            let until = self.clock.now() + pause;
            steps += 1;
            if steps == TRIES || until >= deadline {
                return Ok(Asked::Taken(Taken { waited, ..taken }));
            }
            self.step_back(asking.id, until).await;
            micros = self.micros(&asking.name);
        }
    }

    /// Asks the nodes once. Where others are expected, one node is asked before all: so they do not
    /// split the nodes between them.
    async fn try_once(
        self: &Arc<Self>,
        turn: &SetOut<N>,
        asking: &Asking,
        (one_first, waited): (bool, Duration),
        micros: u64,
        deadline: Instant,
    ) -> Result<Tried, StoreError> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let now = self.clock.now();
        let seen = seen(asking.watermark, micros);
        let ballot = ballot(seen, micros);
        let attempt = self.next_attempt();
        let order = order(self.start_of(&asking.name), nodes, self.unwell(now));
        let mut flying = TakeBack {
            inner: Arc::clone(self),
            name: asking.name.clone(),
            id: asking.id,
            attempt,
            tally: Tally::new(nodes),
            has_waited: asking.waits() && one_first,
            is_done: false,
        };
        // A node that has forgotten the place, or never knew it, is told for how long the others know it.
        let command = |tally: &Tally| NodeCommand {
            name: asking.name.clone(),
            id: asking.id,
            word: Word::Ask {
                attempt,
                ballot,
                ttl: asking.life,
                waited: waited.max(tally.waited()),
                heard: asking.heard,
                label: asking.label.clone(),
                keeps: asking.keeps,
            },
        };
        let mut unasked = order[..nodes].iter();
        let mut pending = FuturesUnordered::new();
        let (mut hedges, mut is_late, mut failures) = (0, false, Vec::new());
        let mut timer = self.clock.sleep_until(now);
        let verdict = loop {
            match (self.rules.verdict)(&flying.tally) {
                // All are asked, and another one would be by now: who hangs decides nothing.
                Verdict::Open if is_late && flying.tally.majority_answered() => {
                    break Verdict::Split;
                }
                Verdict::Open => {}
                verdict => break verdict,
            }
            let is_first_heard = flying.tally.granted() != 0;
            let hopes = if one_first && !is_first_heard { 1 } else { needed };
            while flying.tally.hopeful() < hopes + hedges
                && let Some(node) = unasked.next()
            {
                let node = (self.rules.whom)(*node, order[0]);
                flying.tally.on_ask(node);
                pending.push(self.send(node, command(&flying.tally), deadline));
                timer = self.clock.sleep_until(self.clock.now() + hedge(&self.health));
            }
            select! {
                biased;
                reply = pending.next() => {
                    let Some((node, reply)) = reply else { break Verdict::TooFew };
                    failures.extend(self.failure(node, &reply));
                    flying.tally.on_answer(node, reply.as_ref().ok());
                }
                () = &mut timer, if !is_late => {
                    is_late = unasked.len() == 0;
                    hedges += 1;
                }
            }
        };
        let taken = |tally: &Tally| Taken {
            remaining: tally.wait(),
            keeps: tally.keeps(),
            older: tally.older(),
            waited: tally.waited(),
        };
        match verdict {
            Verdict::Granted => {
                self.settle(turn, asking, flying, (ballot, seen), (now, deadline)).await
            }
            Verdict::Taken => Ok(Tried::Over(Asked::Taken(taken(&flying.tally)))),
            Verdict::Split => Ok(Tried::Split(taken(&flying.tally))),
            Verdict::Withdrawn => Ok(Tried::Over(Asked::Withdrawn)),
            Verdict::TooFew | Verdict::Open => {
                let answered = nodes - failures.len().min(nodes);
                let may_have_run = flying.tally.granted() != 0
                    || failures.iter().any(|error| !error.is_definite());
                let error = too_few(answered, nodes, &failures, may_have_run);
                Err(error.for_lock(&asking.name))
            }
        }
    }
}
