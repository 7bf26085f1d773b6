use std::task::{Context, Poll, Waker};

use super::{
    command::NodeAnswer,
    tally::{MOST_NODES, Nodes, bit},
};
use crate::{mutex::Mutex, store::StoreError};

/// The answers of several nodes to one command. Who waits for them is woken once, when all are there
/// that were asked for, or one is unusual: to wake a task costs it as much as to decide.
#[derive(Debug, Default)]
pub struct Gathering(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    answers: [Option<Told>; MOST_NODES],
    /// The nodes whose answers are to come.
    awaited: Nodes,
    has_unusual: bool,
    is_closed: bool,
    waker: Option<Waker>,
}

/// What a node has told.
pub(crate) type Told = Result<NodeAnswer, StoreError>;

impl Gathering {
    /// One more node is to answer.
    pub(crate) fn expect(&self, node: usize) {
        self.0.lock().awaited |= bit(node);
    }

    /// A node has answered, or will not.
    pub fn tell(&self, node: usize, told: Result<NodeAnswer, StoreError>) {
        let mut state = self.0.lock();
        state.has_unusual |= !is_usual(&told);
        state.awaited &= !bit(node);
        if let Some(place) = state.answers.get_mut(node) {
            *place = Some(told);
        }
        let waker = if state.is_ready() { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next answer; ready with `None` when all were taken.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<(usize, Told)>> {
        let mut state = self.0.lock();
        if state.is_ready() {
            let at = state.answers.iter().position(Option::is_some);
            if let Some(node) = at
                && let Some(told) = state.answers[node].take()
            {
                return Poll::Ready(Some((node, told)));
            }
            if state.awaited == 0 {
                return Poll::Ready(None);
            }
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// From now on each answer counts by itself.
    pub(crate) fn hurry(&self) {
        self.0.lock().has_unusual = true;
    }

    pub(crate) fn is_over(&self) -> bool {
        let state = self.0.lock();
        state.awaited == 0 && state.answers.iter().all(Option::is_none)
    }

    /// Nobody needs the answers any more: what was not sent need not be.
    pub(crate) fn close(&self) {
        self.0.lock().is_closed = true;
    }

    /// Whether nobody needs the answers any more.
    pub fn is_closed(&self) -> bool {
        self.0.lock().is_closed
    }
}

impl State {
    fn is_ready(&self) -> bool {
        self.awaited == 0 || self.has_unusual
    }
}

/// Whether an answer decides nothing by itself.
fn is_usual(told: &Told) -> bool {
    matches!(told, Ok(NodeAnswer::Granted(_) | NodeAnswer::Ended { .. } | NodeAnswer::Held { .. }))
}
