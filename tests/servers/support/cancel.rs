//! Cancelling a future after microseconds, for which tokio's timers are too coarse.

use std::time::Duration;

use leasehold::time::{Clock, SystemClock};

/// The output of a future, unless it takes longer: then it is dropped where it stands.
pub(crate) async fn after<T>(delay: Duration, future: impl IntoFuture<Output = T>) -> Option<T> {
    let ends_at = SystemClock.now() + delay;
    let cancel = async {
        while SystemClock.now() < ends_at {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = cancel => None,
        output = future.into_future() => Some(output),
    }
}
