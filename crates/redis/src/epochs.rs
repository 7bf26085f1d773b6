use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Counts the servers that a route has led to; a connection of an older one is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Epoch(pub(super) u64);

/// The present epoch of a route.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    now: AtomicU64,
    /// Notified when an epoch ends.
    ended: Notify,
}

impl Epochs {
    /// The epoch in which nothing has changed yet.
    pub(super) const FIRST: Epoch = Epoch(0);

    pub(super) fn now(&self) -> Epoch {
        Epoch(self.now.load(Ordering::Acquire))
    }

    /// Another server is the one that the route leads to: the next epoch begins.
    pub(super) fn advance(&self) -> Epoch {
        let next = Epoch(self.now.fetch_add(1, Ordering::AcqRel) + 1);
        self.ended.notify_waiters();
        next
    }

    /// Returns when an epoch has ended.
    pub(super) async fn left(&self, epoch: Epoch) {
        loop {
            // Made before the look, so that no end is missed.
            let ended = self.ended.notified();
            if self.now() != epoch {
                return;
            }
            ended.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    #[test]
    fn who_waits_for_the_end_of_an_epoch_is_woken_by_the_next() {
        let (epochs, mut cx) = (Epochs::default(), Context::from_waker(Waker::noop()));
        let first = epochs.now();
        let mut left = pin!(epochs.left(first));
        assert!(left.as_mut().poll(&mut cx).is_pending());
        assert!(epochs.advance() > first && first == Epochs::FIRST);
        assert!(left.poll(&mut cx).is_ready());
        assert!(pin!(epochs.left(first)).poll(&mut cx).is_ready());
    }
}
