use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use super::{
    asks::SLOW,
    attempt::Asking,
    command::{NodeAnswer, NodeCommand, Word},
    failure::too_few,
    flights::Flights,
    health::hedge,
    node::QuorumNode,
    posts::Posts,
    store::Inner,
    tally::{Nodes, bit, count, kth_longest, majority},
};
use crate::{
    clock::Instant,
    store::{
        AcquireAnswer, Granted, Hold, HoldAnswer, Next, Release, ReleaseAnswer, RenewAnswer,
        Renewal, StoreError, Withdraw, WithdrawAnswer,
    },
    types::{Acks, AcquisitionId, FenceToken, LockName},
};

/// What some nodes have answered to a command that all of them were sent.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// Those that had the lease, and did what was asked.
    pub(crate) done: Nodes,
    /// Those that do not have it.
    pub(crate) gone: Nodes,
    /// Those where the lock is kept closed.
    pub(crate) kept: Nodes,
    pub(crate) left: Vec<Duration>,
    pub(crate) contended: bool,
    pub(crate) counter: u64,
    pub(crate) failures: Vec<StoreError>,
}

impl Round {
    fn on_answer(&mut self, node: usize, answer: Result<NodeAnswer, StoreError>) {
        match answer {
            Ok(NodeAnswer::Held { remaining, contended }) => {
                self.done |= bit(node);
                self.left.push(remaining);
                self.contended |= contended;
            }
            Ok(NodeAnswer::Kept { remaining }) => {
                self.done |= bit(node);
                self.kept |= bit(node);
                self.left.push(remaining);
            }
            Ok(NodeAnswer::Ended { counter }) => {
                self.done |= bit(node);
                self.counter = self.counter.max(counter);
            }
            Ok(NodeAnswer::Withdrawn { ended }) if ended => self.done |= bit(node),
            Ok(NodeAnswer::Gone | NodeAnswer::Out { .. } | NodeAnswer::Withdrawn { .. }) => {
                self.gone |= bit(node);
            }
            Ok(_) => self.failures.push(super::failure::strange()),
            Err(error) => self.failures.push(error),
        }
    }
}

/// The lease that a command is about, as this process knows it.
#[derive(Debug, Clone, Copy)]
struct Known {
    attempt: u64,
    fence: u64,
    asked: Nodes,
    holding: Nodes,
    ended: Nodes,
}

impl<N: QuorumNode> Inner<N> {
    fn all(&self) -> Nodes {
        (0..self.nodes.len()).fold(0, |all, node| all | bit(node))
    }

    /// Sends a command to some nodes. Returns when it is `enough`, and the others had a moment; what is
    /// not answered by then goes on in the background.
    async fn round(
        self: &Arc<Self>,
        to: Nodes,
        command: impl Fn(usize) -> NodeCommand,
        deadline: Instant,
        enough: impl Fn(&Round) -> bool,
    ) -> Round {
        let mut flights = Flights::none();
        let nodes: Vec<_> = (0..self.nodes.len()).filter(|node| to & bit(*node) != 0).collect();
        let sent_at = self.clock.now();
        let mut posts = Posts::none();
        // Marks may differ from node to node; what is posted is the same for all.
        if let Some(first) = nodes.first().map(|node| command(*node))
            && nodes.iter().all(|node| self.nodes[*node].is_busy(&first.name))
        {
            for node in &nodes {
                posts.add(self, *node, command(*node), deadline);
            }
        } else {
            for node in nodes {
                flights.launch(node, self.send(node, command(node), deadline));
            }
        }
        let mut round = Round::default();
        let mut timer = None;
        let mut is_enough = false;
        loop {
            if !is_enough && enough(&round) {
                (is_enough, timer) = (true, None);
            }
            let event = poll_fn(|cx| {
                if let Poll::Ready(Some(answer)) = flights.poll(cx) {
                    return Poll::Ready(Some(Ok(answer)));
                }
                if let Poll::Ready(Some((node, answer))) = posts.poll(cx) {
                    self.note(node, sent_at, answer.as_ref());
                    return Poll::Ready(Some(Ok((node, answer))));
                }
                if flights.are_over() && posts.are_over() {
                    return Poll::Ready(None);
                }
                let until = || {
                    let now = self.clock.now();
                    if posts.are_unhurried() {
                        now + SLOW
                    } else if is_enough {
                        now + hedge(&self.health)
                    } else {
                        deadline.min(sent_at + self.settings.patience() + SLOW)
                    }
                };
                let sleep = timer.get_or_insert_with(|| self.clock.sleep_until(until()));
                sleep.as_mut().poll(cx).map(|()| Some(Err(())))
            })
            .await;
            match event {
                Some(Ok((node, answer))) => round.on_answer(node, answer),
                Some(Err(())) if posts.are_unhurried() => {
                    timer = None;
                    if let Some(first) = (0..self.nodes.len()).find(|node| to & bit(*node) != 0) {
                        posts.hurry(self, &command(first).name);
                    }
                }
                Some(Err(())) | None => break,
            }
        }
        posts.leave();
        if !flights.are_over() {
            drop(self.runtime.spawn(async move { while flights.next().await.is_some() {} }));
        }
        round
    }

    fn known(&self, name: &LockName, id: AcquisitionId, fence: FenceToken) -> Option<Known> {
        let records = self.records.lock();
        let its = records.get(id).filter(|record| record.first == fence && record.name == *name);
        its.map(|record| Known {
            attempt: record.attempt,
            fence: record.last.get(),
            asked: record.asked,
            holding: record.holding,
            ended: record.ended,
        })
    }

    /// The grant of an acquisition that has one already, if a majority still has it.
    pub(crate) async fn confirm(
        self: &Arc<Self>,
        name: &LockName,
        id: AcquisitionId,
        deadline: Instant,
    ) -> Result<Option<Granted>, StoreError> {
        let its = {
            let records = self.records.lock();
            let its = records.get(id).filter(|record| record.name == *name && !record.is_ending);
            its.map(|record| (record.first, record.last))
        };
        let Some((first, last)) = its else { return Ok(None) };
        let Some(known) = self.known(name, id, first) else { return Ok(None) };
        let needed = majority(self.nodes.len());
        let word = Word::Settle { attempt: known.attempt, fence: known.fence };
        let command = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
        let enough = |round: &Round| count(round.done) >= needed;
        let mut round = self.round(known.asked, command, deadline, enough).await;
        if enough(&round) {
            let remaining = kth_longest(&mut round.left, needed);
            let (contended, regressed) = (round.contended, false);
            return Ok(Some(Granted { first, last, remaining, contended, regressed }));
        }
        if count(round.gone | (self.all() & !known.asked)) >= needed {
            let mut records = self.records.lock();
            if records.get(id).is_some_and(|record| record.attempt == known.attempt) {
                records.remove(id);
            }
            return Ok(None);
        }
        let answered = count(round.done | round.gone);
        Err(too_few(answered, self.nodes.len(), &round.failures, true))
    }

    pub(crate) async fn hold(
        self: &Arc<Self>,
        command: Hold<'_>,
    ) -> Result<HoldAnswer, StoreError> {
        let Hold { name, id, fence, update, ttl, deadline, .. } = command;
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let mut failed = None;
        for is_second in [false, true] {
            let Some(known) = self.known(name, id, fence) else { return Ok(HoldAnswer::Gone) };
            if let Some(record) = self.records.lock().get_mut(id) {
                record.holds = Some(update);
            }
            let word = Word::Hold { attempt: known.attempt, update, ttl };
            let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
            let enough = |round: &Round| count(round.done) >= needed;
            let sent_at = self.clock.now();
            let mut round = self.round(known.asked, make, deadline, enough).await;
            if enough(&round) {
                let remaining = kth_longest(&mut round.left, needed);
                if let Some(record) = self.records.lock().get_mut(id) {
                    record.until = record.until.max(sent_at + remaining);
                }
                return Ok(HoldAnswer::Held { remaining });
            }
            failed = Some(round);
            if !is_second {
                match self.widen(name, id, fence, ttl, deadline).await? {
                    RenewAnswer::Renewed { .. } => {}
                    _ => return Ok(HoldAnswer::Gone),
                }
            }
        }
        let round = failed.unwrap_or_default();
        Err(too_few(count(round.done | round.gone), nodes, &round.failures, true))
    }

    /// Brings a lease to nodes that were not asked for it, where those that have it do not answer.
    async fn widen(
        self: &Arc<Self>,
        name: &LockName,
        id: AcquisitionId,
        fence: FenceToken,
        ttl: crate::types::Ttl,
        deadline: Instant,
    ) -> Result<RenewAnswer, StoreError> {
        let renewal = Renewal { name: name.clone(), id, fence, ttl, acks: Acks::NONE };
        let renewed = self.renew(std::slice::from_ref(&renewal), deadline).await;
        renewed.into_iter().next().unwrap_or(Ok(RenewAnswer::Gone))
    }

    pub(crate) async fn release(
        self: &Arc<Self>,
        command: Release<'_>,
    ) -> Result<ReleaseAnswer, StoreError> {
        if let Some(rest) = command.keep_in_range() {
            return self.keep(command, rest).await;
        }
        let ended = self.end(command).await?;
        let Some(next) = command.next else { return Ok(ended) };
        self.go_on(command.name, next, ended, command.deadline).await
    }

    /// Ends a lease: it is over when a majority is free of it.
    async fn end(self: &Arc<Self>, command: Release<'_>) -> Result<ReleaseAnswer, StoreError> {
        let Release { name, id, fence, deadline, .. } = command;
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        self.waiting.lock().remove(id);
        self.call_off(id);
        let known = self.known(name, id, fence);
        if known.is_some()
            && let Some(record) = self.records.lock().get_mut(id)
        {
            record.is_ending = true;
        }
        let all = self.all();
        let Known { attempt, asked, holding, ended, .. } =
            known.unwrap_or(Known { attempt: 0, fence: 0, asked: all, holding: all, ended: 0 });
        let fence = if known.is_some() { 0 } else { fence.get() };
        let make = |node| {
            let marks = attempt != 0 && holding & bit(node) == 0;
            let word = Word::End { attempt, fence, marks };
            NodeCommand { name: name.clone(), id, word }
        };
        let enough =
            |round: &Round| count(round.done | round.gone | ended | (all & !asked)) >= needed;
        let mut round = self.round(asked & !ended, make, deadline, enough).await;
        if count(round.kept) >= needed {
            let remaining = kth_longest(&mut round.left, needed);
            return Ok(ReleaseAnswer::Kept { remaining });
        }
        let ended = ended | round.done;
        if let Some(record) = self.records.lock().get_mut(id) {
            record.ended |= round.done;
        }
        if !enough(&round) {
            let answered = count(round.done | round.gone);
            return Err(too_few(answered, nodes, &round.failures, true));
        }
        if known.is_some() {
            self.records.lock().remove(id);
        }
        let unknown = asked & !(ended | round.gone);
        let had_it = count(ended | unknown) >= needed && ended != 0;
        Ok(if had_it { ReleaseAnswer::Released } else { ReleaseAnswer::Gone })
    }

    async fn keep(
        self: &Arc<Self>,
        command: Release<'_>,
        rest: Duration,
    ) -> Result<ReleaseAnswer, StoreError> {
        let Release { name, id, fence, deadline, .. } = command;
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        let mut known = self.known(name, id, fence);
        let mut round = Round::default();
        for is_second in [false, true] {
            let to = known.map_or_else(|| self.all(), |known| known.asked);
            let attempt = known.map_or(0, |known| known.attempt);
            let block = if known.is_some() { 0 } else { fence.get() };
            let word = Word::Keep { attempt, fence: block, rest };
            let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
            let enough = |round: &Round| count(round.done) >= needed;
            round = self.round(to, make, deadline, enough).await;
            if enough(&round) {
                self.records.lock().remove(id);
                let remaining = kth_longest(&mut round.left, needed);
                return Ok(ReleaseAnswer::Kept { remaining });
            }
            if count(round.gone | (self.all() & !to)) >= needed && round.done == 0 {
                self.records.lock().remove(id);
                return Ok(ReleaseAnswer::Gone);
            }
            if is_second || known.is_none() {
                break;
            }
            let ttl = crate::types::Ttl::default();
            let _ = self.widen(name, id, fence, ttl, deadline).await;
            known = self.known(name, id, fence);
        }
        Err(too_few(count(round.done | round.gone), nodes, &round.failures, true))
    }

    /// Asks for the next acquisition of a runtime whose turn is over.
    async fn go_on(
        self: &Arc<Self>,
        name: &LockName,
        next: Next<'_>,
        ended: ReleaseAnswer,
        deadline: Instant,
    ) -> Result<ReleaseAnswer, StoreError> {
        let Next { id, ttl, watermark, label, keeps, heartbeat } = next;
        if let Some(granted) = self.confirm(name, id, deadline).await? {
            return Ok(ReleaseAnswer::NextGranted(granted));
        }
        let window = heartbeat.window(ttl);
        let since = self.waiting.lock().since(id).unwrap_or_else(|| self.micros());
        let (name, label) = (name.clone(), label.clone());
        let asking =
            Asking { name, id, life: window, watermark, label, keeps, since, heard: window };
        let asked = self.ask(&asking, false, deadline).await?;
        Ok(match self.answer(asked, asking, ttl, Some(heartbeat)) {
            AcquireAnswer::Granted(granted) => ReleaseAnswer::NextGranted(granted),
            AcquireAnswer::Queued(place) => ReleaseAnswer::NextQueued(place),
            AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn => ended,
        })
    }

    pub(crate) async fn withdraw(
        self: &Arc<Self>,
        command: Withdraw<'_>,
    ) -> Result<WithdrawAnswer, StoreError> {
        let Withdraw { name, id, deadline } = command;
        let (nodes, needed) = (self.nodes.len(), majority(self.nodes.len()));
        self.waiting.lock().remove(id);
        self.call_off(id);
        let its = {
            let mut records = self.records.lock();
            let its = records.get_mut(id);
            its.map(|record| record.is_ending = true).is_some()
        };
        let make = |_| NodeCommand { name: name.clone(), id, word: Word::Withdraw };
        let enough = |round: &Round| count(round.done | round.gone) >= needed;
        let round = self.round(self.all(), make, deadline, enough).await;
        if !enough(&round) {
            let answered = count(round.done | round.gone);
            return Err(too_few(answered, nodes, &round.failures, true));
        }
        if its {
            self.records.lock().remove(id);
        }
        Ok(WithdrawAnswer { ended_grant: round.done != 0 })
    }

    /// Sends a command to all nodes, for those that look or act from outside.
    pub(crate) async fn everywhere(
        self: &Arc<Self>,
        name: &LockName,
        id: AcquisitionId,
        word: &Word,
        deadline: Instant,
        enough: impl Fn(&Round) -> bool,
    ) -> Round {
        let make = |_| NodeCommand { name: name.clone(), id, word: word.clone() };
        self.round(self.all(), make, deadline, enough).await
    }
}
