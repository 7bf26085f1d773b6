use std::{
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, Waker},
};

use leasehold_core::{StoreError, store::Reply};

/// The outcome of a command.
pub(in crate::sim) type Outcome = Result<Reply, StoreError>;

/// Where a sender waits for the outcome of its command; clones are the same.
#[derive(Debug, Clone, Default)]
pub(in crate::sim) struct Slot {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Slot {
    /// Tells the sender; only the first time counts.
    pub(in crate::sim) fn fill(&self, outcome: Outcome) {
        let waker = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.outcome.get_or_insert(outcome);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for what comes.
    pub(in crate::sim) async fn taken(&self) -> Outcome {
        poll_fn(|cx| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(outcome) = &state.outcome {
                return Poll::Ready(outcome.clone());
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }
}
