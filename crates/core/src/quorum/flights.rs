use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use super::tally::MOST_NODES;

/// Commands under way to some of the nodes.
pub(crate) struct Flights<F> {
    slots: [Option<(usize, Pin<Box<F>>)>; MOST_NODES],
    /// How many are under way.
    count: usize,
}

impl<F: Future> Flights<F> {
    pub(crate) fn none() -> Self {
        Self { slots: [const { None }; MOST_NODES], count: 0 }
    }

    /// Adds a command to a node, unless too many are under way.
    pub(crate) fn launch(&mut self, node: usize, flight: F) {
        if let Some(free) = self.slots.iter_mut().find(|slot| slot.is_none()) {
            self.count += 1;
            *free = Some((node, Box::pin(flight)));
        }
    }

    pub(crate) fn are_over(&self) -> bool {
        self.count == 0
    }

    /// The next answer, with its node; ready with `None` when nothing is under way.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<(usize, F::Output)>> {
        if self.are_over() {
            return Poll::Ready(None);
        }
        for slot in &mut self.slots {
            let Some((node, flight)) = slot else { continue };
            if let Poll::Ready(answer) = flight.as_mut().poll(cx) {
                let node = *node;
                *slot = None;
                self.count -= 1;
                return Poll::Ready(Some((node, answer)));
            }
        }
        Poll::Pending
    }

    pub(crate) async fn next(&mut self) -> Option<(usize, F::Output)> {
        poll_fn(|cx| self.poll(cx)).await
    }
}
