use std::{future::poll_fn, sync::Arc, time::Duration};

use super::{
    asks::{Asks, Event},
    ballot::{self, Block, Fence},
    command::{NodeAnswer, NodeCommand, Vote, Word},
    failure::{out, strange, too_few},
    flights::Flights,
    health::{order, unwell},
    node::QuorumNode,
    record::Record,
    store::Inner,
    tally::{Nodes, Tally, Verdict, bit, count, majority},
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
    /// Since when it waits, in microseconds since the Unix epoch; 0 if it does not.
    pub(crate) since: u64,
    /// For how long nodes remember that it waits.
    pub(crate) heard: Duration,
}

/// What came of it.
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
}

/// What came of one try.
enum Tried {
    Over(Asked),
    /// Others asked at the same time, and nobody has a majority.
    Split(Taken),
}

/// How often an acquisition that met others steps back and tries again.
const TRIES: u32 = 4;

/// How long it steps back.
const SHORTEST_STEP: Duration = Duration::from_millis(2);
const LONGEST_STEP: Duration = Duration::from_millis(20);

impl<N: QuorumNode> Inner<N> {
    /// Asks the nodes until a majority has decided.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        asking: &Asking,
        is_contended: bool,
        deadline: Instant,
    ) -> Result<Asked, StoreError> {
        let _under_way = self.set_out(asking.id);
        let mut steps = 0;
        loop {
            if self.is_over(asking.id) {
                return Ok(Asked::Withdrawn);
            }
            let taken = match self.try_once(asking, is_contended || steps > 0, deadline).await? {
                Tried::Over(asked) => return Ok(asked),
                Tried::Split(taken) => taken,
            };
            // Who stands behind others leaves them the first step.
            let behind = u32::try_from(taken.older.min(3)).unwrap_or(3);
            let pause =
                backoff(SHORTEST_STEP, LONGEST_STEP, steps + behind, self.entropy.fraction());
            let until = self.clock.now() + pause;
            steps += 1;
            if steps == TRIES || until >= deadline || self.records.lock().get(asking.id).is_some() {
                return Ok(Asked::Taken(taken));
            }
            self.clock.sleep_until(until).await;
        }
    }

    /// Asks the nodes once. Where others are expected, one node is asked before all: so they do not
    /// split the nodes between them.
    async fn try_once(
        self: &Arc<Self>,
        asking: &Asking,
        one_first: bool,
        deadline: Instant,
    ) -> Result<Tried, StoreError> {
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let now = self.clock.now();
        let micros = self.micros();
        let seen = ballot::seen(asking.watermark, micros);
        let ballot = ballot::ballot(seen, micros);
        let attempt = self.next_attempt();
        let order = order(self.start_of(&asking.name), nodes, self.unwell(now));
        let mut flying = TakeBack {
            inner: Arc::clone(self),
            name: asking.name.clone(),
            id: asking.id,
            attempt,
            tally: Tally::new(nodes),
            is_done: false,
        };
        let command = NodeCommand {
            name: asking.name.clone(),
            id: asking.id,
            word: Word::Ask {
                attempt,
                ballot,
                ttl: asking.life,
                since: asking.since,
                heard: asking.heard,
                label: asking.label.clone(),
                keeps: asking.keeps,
            },
        };
        let mut asks = Asks::new(self, &order, now, deadline);
        if !one_first
            && asks.first(needed).iter().all(|node| self.nodes[*node].is_busy(&asking.name))
        {
            for node in asks.take_first(needed) {
                flying.tally.on_ask(node);
                asks.posts.add(self, node, command.clone(), deadline);
            }
        }
        let verdict = loop {
            let verdict = (self.rules.verdict)(&flying.tally);
            if verdict != Verdict::Open {
                break verdict;
            }
            let is_first_heard = flying.tally.granted() != 0;
            let wanted = if one_first && !is_first_heard { 1 } else { needed };
            while flying.tally.hopeful() < wanted + asks.hedges
                && let Some(node) = asks.next_node()
            {
                let node = (self.rules.whom)(node, order[0]);
                flying.tally.on_ask(node);
                asks.flights.launch(node, self.send(node, command.clone(), deadline));
            }
            match poll_fn(|cx| asks.poll(self, cx)).await {
                Event::Answer(node, answer) => {
                    asks.failures.extend(self.failure(node, &answer));
                    flying.tally.on_answer(node, answer.as_ref().ok());
                }
                Event::Over => break Verdict::TooFew,
                Event::Slow => asks.posts.hurry(self, &asking.name),
                Event::Hedge => asks.hedges += 1,
                Event::Late => asks.posts.close(),
            }
        };
        let failures = asks.end();
        let taken = |tally: &Tally| Taken {
            remaining: tally.wait(),
            keeps: tally.keeps(),
            older: tally.older(),
        };
        match verdict {
            Verdict::Granted => self.settle(asking, flying, (ballot, seen), deadline).await,
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

    /// Gives a lease that a majority granted its fence.
    async fn settle(
        self: &Arc<Self>,
        asking: &Asking,
        mut flying: TakeBack<N>,
        (ballot, seen): (u64, u64),
        deadline: Instant,
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
                let (by, left) = self.settled(&flying, fence, deadline).await;
                if count(by) < needed {
                    let remaining = SHORTEST_STEP;
                    return Ok(Tried::Split(Taken { remaining, keeps: false, older: 0 }));
                }
                (by, fence, left)
            }
        };
        let votes = || flying.tally.votes(by).map(|(_, vote)| vote);
        let contended = votes().any(|vote: Vote| vote.contended);
        let block = ballot::block(votes(), fence, seen);
        let token = |number| FenceToken::try_from(number).map_err(|_| StoreError::exhausted());
        let (first, last) = (token(block.first)?, token(block.last)?);
        let remaining = (self.rules.left)(&mut left, needed);
        let now = self.clock.now();
        let record = Record {
            name: asking.name.clone(),
            attempt: flying.attempt,
            first,
            last,
            before: block.first - 1,
            asked: flying.tally.granted() | flying.tally.unheard(),
            holding: by,
            barred: 0,
            ended: 0,
            is_ending: false,
            label: asking.label.clone(),
            keeps: asking.keeps,
            holds: None,
            until: now + remaining,
        };
        let mut records = self.records.lock();
        if self.is_over(asking.id) {
            return Ok(Tried::Over(Asked::Withdrawn));
        }
        flying.is_done = true;
        records.insert(asking.id, record, now);
        drop(records);
        let Block { regressed, .. } = block;
        Ok(Tried::Over(Asked::Granted(Granted { first, last, remaining, contended, regressed })))
    }

    /// Writes a fence to the nodes that granted: those that have it, and how long it is left there.
    async fn settled(
        self: &Arc<Self>,
        flying: &TakeBack<N>,
        fence: u64,
        deadline: Instant,
    ) -> (Nodes, Vec<Duration>) {
        let needed = majority(self.nodes.len());
        let word = Word::Settle { attempt: flying.attempt, fence };
        let command = NodeCommand { name: flying.name.clone(), id: flying.id, word };
        let mut flights = Flights::none();
        for (node, _) in flying.tally.votes(flying.tally.granted()) {
            flights.launch(node, self.send(node, command.clone(), deadline));
        }
        let (mut by, mut left) = (0, Vec::new());
        while count(by) < needed
            && let Some((node, answer)) = flights.next().await
        {
            if let Ok(NodeAnswer::Held { remaining, .. }) = answer {
                by |= bit(node);
                left.push(remaining);
            }
        }
        (by, left)
    }

    /// Sends a command to a node, within the time that one may take.
    pub(crate) fn send(
        self: &Arc<Self>,
        node: usize,
        command: NodeCommand,
        deadline: Instant,
    ) -> impl Future<Output = Result<NodeAnswer, StoreError>> + Send + use<N> {
        let inner = Arc::clone(self);
        async move {
            let sent_at = inner.clock.now();
            let deadline = deadline.min(sent_at + inner.settings.patience());
            let answer = inner.nodes[node].send(command, deadline).await;
            inner.note(node, sent_at, answer.as_ref());
            answer
        }
    }

    /// Remembers how well a node has answered.
    pub(crate) fn note(
        &self,
        node: usize,
        sent_at: Instant,
        answer: Result<&NodeAnswer, &StoreError>,
    ) {
        let (now, health) = (self.clock.now(), &self.health[node]);
        match answer {
            Ok(NodeAnswer::Out { rest }) => {
                if rest.is_none() {
                    self.nodes[node].has_no_mark();
                }
                health.rest(
                    now + rest.unwrap_or(Duration::from_millis(50)).min(Duration::from_secs(1)),
                );
            }
            Ok(_) => health.on_answer(now.saturating_since(sent_at)),
            Err(_) => health.on_failure(now),
        }
    }

    /// Why an answer counts as none.
    fn failure(&self, node: usize, answer: &Result<NodeAnswer, StoreError>) -> Option<StoreError> {
        match answer {
            Err(error) => Some(error.clone()),
            Ok(NodeAnswer::Out { rest }) => Some(out(&self.nodes[node].place(), *rest)),
            Ok(_) => None,
        }
    }

    fn unwell(&self, now: Instant) -> Nodes {
        let away = self.nodes.iter().enumerate().filter(|(_, node)| !node.is_ready());
        away.fold(unwell(&self.health, now), |set, (node, _)| set | bit(node))
    }
}

/// A try under way: dropped before it is done, it is taken back wherever it may have come to.
struct TakeBack<N: QuorumNode> {
    inner: Arc<Inner<N>>,
    name: LockName,
    id: AcquisitionId,
    attempt: u64,
    tally: Tally,
    is_done: bool,
}

/// How often a try is taken back at a node that does not answer.
const TAKE_BACKS: u32 = 4;

impl<N: QuorumNode> Drop for TakeBack<N> {
    fn drop(&mut self) {
        let tally = &self.tally;
        let (granted, unheard) = (tally.granted(), tally.unheard());
        if self.is_done || !self.inner.rules.takes_back || granted | unheard == 0 {
            return;
        }
        for node in 0..self.inner.nodes.len() {
            if (granted | unheard) & bit(node) == 0 {
                continue;
            }
            let (inner, marks) = (Arc::clone(&self.inner), granted & bit(node) == 0);
            let word = Word::End { attempt: self.attempt, fence: 0, marks };
            let command = NodeCommand { name: self.name.clone(), id: self.id, word };
            drop(self.inner.runtime.spawn(async move { inner.take_back(node, command).await }));
        }
    }
}

impl<N: QuorumNode> Inner<N> {
    async fn take_back(self: Arc<Self>, node: usize, command: NodeCommand) {
        for failures in 0..TAKE_BACKS {
            let deadline = self.clock.now() + self.settings.patience();
            if self.send(node, command.clone(), deadline).await.is_ok() {
                return;
            }
            let (shortest, longest) = (Duration::from_millis(50), Duration::from_secs(2));
            let pause = backoff(shortest, longest, failures, self.entropy.fraction());
            self.clock.sleep_until(self.clock.now() + pause).await;
        }
    }

    /// The answer of a node that does not belong to its command.
    pub(crate) fn strange(&self, node: usize) -> StoreError {
        strange().from_endpoint(self.nodes[node].place())
    }
}
