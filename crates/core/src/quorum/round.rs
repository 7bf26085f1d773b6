use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use super::{
    asks::SLOW,
    command::{NodeAnswer, NodeCommand, Word},
    flights::Flights,
    health::hedge,
    node::QuorumNode,
    posts::Posts,
    store::Inner,
    tally::{Nodes, bit},
};
use crate::{
    clock::Instant,
    store::StoreError,
    types::{AcquisitionId, LockName},
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

impl<N: QuorumNode> Inner<N> {
    pub(crate) fn all(&self) -> Nodes {
        (0..self.nodes.len()).fold(0, |all, node| all | bit(node))
    }

    /// Sends a command to some nodes. Returns when it is `enough`, and the others had a moment; what is
    /// not answered by then goes on in the background.
    pub(crate) async fn round(
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
                posts.add(self, *node, command(*node), (sent_at, deadline));
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
