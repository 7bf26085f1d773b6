use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use super::tally::MOST_NODES;

/// Commands under way to some of the nodes.
pub(crate) struct Flights<F>([Option<(usize, Pin<Box<F>>)>; MOST_NODES]);

impl<F: Future> Flights<F> {
    pub(crate) fn none() -> Self {
        Self([const { None }; MOST_NODES])
    }

    /// Adds a command to a node, unless too many are under way.
    pub(crate) fn launch(&mut self, node: usize, flight: F) {
        if let Some(free) = self.0.iter_mut().find(|slot| slot.is_none()) {
            *free = Some((node, Box::pin(flight)));
        }
    }

    pub(crate) fn are_over(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// The next answer, with its node; ready with `None` when nothing is under way.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, F::Output)>> {
        let mut is_over = true;
        for slot in &mut self.0 {
            let Some((node, flight)) = slot else { continue };
            is_over = false;
            if let Poll::Ready(answer) = flight.as_mut().poll(cx) {
                let node = *node;
                *slot = None;
                return Poll::Ready(Some((node, answer)));
            }
        }
        if is_over { Poll::Ready(None) } else { Poll::Pending }
    }

    pub(crate) async fn next(&mut self) -> Option<(usize, F::Output)> {
        poll_fn(|cx| self.poll(cx)).await
    }
}
