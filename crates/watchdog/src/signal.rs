use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use leasehold_core::lease::{LeaseState, LossReason};

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
pub struct Lost {
    lease: Arc<HeldLease>,
    ended: Pin<Box<dyn Future<Output = LeaseEnd> + Send>>,
}

impl HeldLease {
    /// A future that resolves when the lease is over.
    pub fn lost(self: &Arc<Self>) -> Lost {
        Lost { lease: Arc::clone(self), ended: Box::pin(end_of(Arc::clone(self))) }
    }
}

async fn end_of(lease: Arc<HeldLease>) -> LeaseEnd {
    let ended = lease.cancellation();
    loop {
        if let Err(end) = still_held(lease.state()) {
            return end;
        }
        let deadline = lease.deadline();
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            () = lease.clock().sleep_until(deadline) => {}
        }
    }
}

fn still_held(state: LeaseState) -> Result<(), LeaseEnd> {
    match state {
        LeaseState::Held { .. } => Ok(()),
        LeaseState::Lost(reason) => Err(LeaseEnd::Lost(reason)),
        LeaseState::Released => Err(LeaseEnd::Released),
    }
}

impl Future for Lost {
    type Output = LeaseEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(end) = still_held(self.lease.state()) {
            return Poll::Ready(end);
        }
        self.ended.as_mut().poll(cx)
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lost")
    }
}
