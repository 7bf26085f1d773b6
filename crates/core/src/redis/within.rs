use tokio::select;

use crate::clock::{Clock, Instant};

/// The output of some work, or `None` when the deadline comes first.
///
/// # Cancel safety
///
/// Dropping the future drops the work.
pub(super) async fn within<T>(
    clock: &dyn Clock,
    deadline: Instant,
    work: impl Future<Output = T>,
) -> Option<T> {
    select! {
        biased;
        done = work => Some(done),
        () = clock.sleep_until(deadline) => None,
    }
}
