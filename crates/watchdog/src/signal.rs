use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use leasehold_core::lease::{LeaseState, LossReason};
use tokio::select;

use crate::lease::HeldLease;

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEnd {
    /// It was lost.
    Lost(LossReason),
    /// Its holder released it.
    Released,
}

impl fmt::Display for LeaseEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(reason) => write!(f, "lost: {reason}"),
            Self::Released => f.write_str("released by its holder"),
        }
    }
}

/// A future that resolves when a lease is over; it borrows nothing.
///
/// It also watches the deadline of the lease by itself. Every poll reads the clock, because a timer
/// may come late after a pause of the process.
///
/// # Cancel safety
///
/// Dropping it forgets the watch and nothing else.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::{LeaseEnd, LockRuntime, LossReason};
///
/// let locks = LockRuntime::embedded()?;
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// let lost = guard.lost(); // borrows nothing: a task of its own may await it
///
/// locks.force_release("orders/42").await?; // as an operator may do
/// assert_eq!(lost.await, LeaseEnd::Lost(LossReason::Gone));
/// # Ok(())
/// # }
/// ```
#[must_use = "a future does nothing unless it is polled"]
pub struct Lost(Pin<Box<dyn Future<Output = LeaseEnd> + Send>>);

impl HeldLease {
    /// A future that resolves when the lease is over.
    pub fn lost(self: &Arc<Self>) -> Lost {
        Lost(Box::pin(end_of(Arc::clone(self))))
    }
}

async fn end_of(lease: Arc<HeldLease>) -> LeaseEnd {
    let token = lease.cancellation();
    loop {
        let deadline = lease.deadline();
        // Polled first, so that every poll reads the clock.
        let ended = poll_fn(|_| match lease.state() {
            LeaseState::Held { .. } => Poll::Pending,
            LeaseState::Lost(reason) => Poll::Ready(LeaseEnd::Lost(reason)),
            LeaseState::Released => Poll::Ready(LeaseEnd::Released),
        });
        select! {
            biased;
            end = ended => return end,
            () = token.cancelled() => {}
            () = lease.clock().sleep_until(deadline) => {}
        }
    }
}

impl Future for Lost {
    type Output = LeaseEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lost")
    }
}
