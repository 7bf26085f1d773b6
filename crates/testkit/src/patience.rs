#![expect(clippy::disallowed_methods, reason = "waits for other processes, in real time")]

use std::{future::Future, thread, time::Duration};

use leasehold_core::{Clock, SystemClock};

/// How long a test waits, in real time, for something that another process does.
///
/// It asks every few milliseconds and goes on the moment the answer is there, so that a generous
/// limit costs nothing but when it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    limit: Duration,
}

impl Patience {
    const INTERVAL: Duration = Duration::from_millis(3);

    /// Patience that ends after `limit`.
    pub fn of(limit: Duration) -> Self {
        Self { limit }
    }

    /// Blocks this thread until `probe` answers; `None` when it did not within the limit.
    pub fn until<T>(self, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
        let ends_at = SystemClock.now() + self.limit;
        loop {
            // The clock first, so that there is one more try after a pause.
            let late = SystemClock.now() >= ends_at;
            if let Some(found) = probe() {
                return Some(found);
            }
            if late {
                return None;
            }
            thread::sleep(Self::INTERVAL);
        }
    }

    /// Waits until `probe` answers; `None` when it did not within the limit.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the probe that is running and nothing else.
    pub async fn until_async<T, F>(self, mut probe: impl FnMut() -> F) -> Option<T>
    where
        F: Future<Output = Option<T>>,
    {
        let ends_at = SystemClock.now() + self.limit;
        loop {
            let late = SystemClock.now() >= ends_at;
            if let Some(found) = probe().await {
                return Some(found);
            }
            if late {
                return None;
            }
            tokio::time::sleep(Self::INTERVAL).await;
        }
    }
}
