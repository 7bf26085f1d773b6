use std::{
    task::{Context, Poll},
    time::Duration,
};

use super::{
    command::NodeAnswer, flights::Flights, health::hedge, node::QuorumNode, posts::Posts,
    store::Inner, tally::MOST_NODES,
};
use crate::{
    clock::{Instant, Sleep},
    store::StoreError,
};

/// What happens to a try.
pub(crate) enum Event {
    Answer(usize, Result<NodeAnswer, StoreError>),
    /// Nothing is under way any more.
    Over,
    /// What was posted has not been answered for a moment.
    Slow,
    /// Another node is to be asked, too.
    Hedge,
    /// All are asked, and another one would be by now.
    Last,
    /// No node takes longer.
    Late,
}

/// After how long a posted command needs a courier of its own.
pub(crate) const SLOW: Duration = Duration::from_millis(1);

/// What a timer is for.
#[derive(Clone, Copy)]
enum After {
    Slow,
    Hedge,
    Last,
    Late,
}

/// A try under way to some of the nodes.
// ADR 0037
pub(crate) struct Asks<F> {
    order: [usize; MOST_NODES],
    nodes: usize,
    /// How many of the order were asked.
    asked: usize,
    /// How many are asked in place of those that take long.
    pub(crate) hedges: usize,
    pub(crate) flights: Flights<F>,
    pub(crate) posts: Posts,
    pub(crate) failures: Vec<StoreError>,
    timer: Option<(After, Sleep)>,
    is_last: bool,
    late_at: Instant,
}

impl<F: Future<Output = Result<NodeAnswer, StoreError>>> Asks<F> {
    pub(crate) fn new<N: QuorumNode>(
        inner: &Inner<N>,
        order: &[usize; MOST_NODES],
        now: Instant,
        deadline: Instant,
    ) -> Self {
        Self {
            order: *order,
            nodes: inner.nodes.len(),
            asked: 0,
            hedges: 0,
            flights: Flights::none(),
            posts: Posts::none(),
            failures: Vec::new(),
            timer: None,
            is_last: false,
            late_at: deadline.min(now + inner.settings.patience()),
        }
    }

    pub(crate) fn first(&self, count: usize) -> &[usize] {
        self.order.get(..count).unwrap_or_default()
    }

    /// The first nodes of the order, which count as asked from now on.
    pub(crate) fn take_first(&mut self, count: usize) -> Vec<usize> {
        self.asked = count;
        self.first(count).to_vec()
    }

    /// The next node to ask.
    pub(crate) fn next_node(&mut self) -> Option<usize> {
        let node = self.order.get(self.asked).filter(|_| self.asked < self.nodes).copied();
        self.asked += usize::from(node.is_some());
        node
    }

    pub(crate) fn poll<N: QuorumNode>(
        &mut self,
        inner: &Inner<N>,
        cx: &mut Context<'_>,
    ) -> Poll<Event> {
        if let Poll::Ready(Some((node, answer))) = self.flights.poll(cx) {
            return Poll::Ready(Event::Answer(node, answer));
        }
        if let Poll::Ready(Some((node, answer))) = self.posts.poll(cx) {
            inner.note(node, self.posts.sent_at(), answer.as_ref());
            return Poll::Ready(Event::Answer(node, answer));
        }
        if self.flights.are_over() && self.posts.are_over() {
            return Poll::Ready(Event::Over);
        }
        let timer = self.timer.take().unwrap_or_else(|| self.next_timer(inner));
        let (after, sleep) = self.timer.insert(timer);
        let after = *after;
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.timer = None;
        Poll::Ready(match after {
            After::Slow => Event::Slow,
            After::Hedge => Event::Hedge,
            After::Last => {
                self.is_last = true;
                Event::Last
            }
            After::Late => Event::Late,
        })
    }

    fn next_timer<N: QuorumNode>(&self, inner: &Inner<N>) -> (After, Sleep) {
        let now = inner.clock.now();
        let (after, at) = if self.posts.are_unhurried() {
            (After::Slow, now + SLOW)
        } else if self.asked < self.nodes {
            (After::Hedge, now + hedge(&inner.health))
        } else if !self.is_last {
            (After::Last, now + hedge(&inner.health))
        } else {
            (After::Late, self.late_at.max(now + SLOW))
        };
        (after, inner.clock.sleep_until(at))
    }

    /// Nothing is waited for any more: why nodes have failed.
    pub(crate) fn end(mut self) -> Vec<StoreError> {
        self.posts.close();
        self.failures
    }
}
