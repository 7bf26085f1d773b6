//! How a service answers over HTTP when a lock was not there, or was lost.

use std::time::Duration;

use leasehold_core::{RETRY_LATER, RETRY_SOON};

use super::{AcquireError, WithError};

impl AcquireError {
    /// The status of HTTP with which a service answers its client. Default for a variant that is new: 500.
    ///
    /// | variant | status | because |
    /// |---|---|---|
    /// | `Timeout` | 409 | others hold the lock; nothing was done under it, and the client may try again |
    /// | `Unavailable` | 503 | the server does not answer, refuses for now, or this process does not reach it; nothing was done under the lock |
    /// | `ShutDown` | 503 | this process is about to end: another one will answer |
    /// | `Lost` | 500 | only from a re-entry, or from several locks: what was done before is not known here |
    /// | all others | 500 | waiting does not help, as with a missing right: an operator has to act |
    ///
    /// ```
    /// use leasehold::{LockRuntime, error::AcquireError};
    ///
    /// async fn busy(locks: &LockRuntime) -> Result<u16, Box<dyn std::error::Error>> {
    ///     match locks.lock("orders/42")?.acquire().await {
    ///         Ok(guard) => drop(guard),
    ///         Err(error) => return Ok(error.status()), // 409 if others hold it, 503 in an outage
    ///     }
    ///     Ok(200)
    /// }
    /// ```
    pub fn status(&self) -> u16 {
        match self {
            Self::Timeout(_) => 409,
            Self::Unavailable(_) | Self::ShutDown { .. } => 503,
            _ => 500,
        }
    }

    /// When the client may try again, for the header `Retry-After`; `None` for a status of 500.
    ///
    /// That is 1 s after a `Timeout` or a `ShutDown`, 5 s after an `Unavailable`, and the time until the lock
    /// opens, if it is only kept closed.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Timeout(timeout) => {
                let kept = timeout.holder.as_ref().filter(|holder| holder.kept);
                Some(kept.map_or(RETRY_SOON, |holder| holder.remaining.max(RETRY_SOON)))
            }
            Self::ShutDown { .. } => Some(RETRY_SOON),
            Self::Unavailable(_) => Some(RETRY_LATER),
            _ => None,
        }
    }
}

impl<E> WithError<E> {
    /// The status of HTTP with which a service answers its client; `None` for an error of the closure, whose
    /// answer is the service's own.
    ///
    /// | variant | status | because |
    /// |---|---|---|
    /// | `Acquire` | that of [`AcquireError::status`] | the closure did not run |
    /// | `Lost` | 500 | the closure was stopped: its write was made, or was not |
    /// | `Body` | – | the error of the closure |
    ///
    /// If the closure has another `with` in it, make one error of the two by [`flatten`](WithError::flatten)
    /// before.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Acquire(error) => Some(error.status()),
            Self::Lost(_) => Some(500),
            Self::Body(_) => None,
        }
    }

    /// When the client may try again, for the header `Retry-After`; as [`AcquireError::retry_after`].
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Acquire(error) => error.retry_after(),
            Self::Lost(_) | Self::Body(_) => None,
        }
    }
}

#[cfg(feature = "axum")]
mod response {
    use axum_core::response::{IntoResponse, Response};
    use http::{StatusCode, header::RETRY_AFTER};

    use super::{AcquireError, WithError};

    const LOST: &str = "the lock was lost: find out what was done before you try again";

    /// The status, `Retry-After`, and a text for the client, which names neither lock nor holder. A status of
    /// 500 is told in the log, with the error.
    impl IntoResponse for AcquireError {
        fn into_response(self) -> Response {
            let status = StatusCode::from_u16(self.status());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let text = match self {
                Self::Timeout(_) => "it is busy: try again",
                Self::Unavailable(_) | Self::ShutDown { .. } => {
                    "it cannot be done now: try again later"
                }
                Self::Lost(_) => LOST,
                _ => "it cannot be done",
            };
            if status == StatusCode::INTERNAL_SERVER_ERROR {
                tracing::error!(error = %self, "a request is answered with status 500");
            }
            match self.retry_after() {
                Some(after) => {
                    // The header has whole seconds.
                    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
                    (status, [(RETRY_AFTER, seconds)], text).into_response()
                }
                None => (status, text).into_response(),
            }
        }
    }

    /// That of the acquire or of the closure's own error; 500 for a lease that was lost, which is told in the
    /// log.
    impl<E: IntoResponse> IntoResponse for WithError<E> {
        fn into_response(self) -> Response {
            match self {
                Self::Acquire(error) => error.into_response(),
                Self::Lost(lost) => {
                    tracing::error!(error = %lost, "a request is answered with status 500");
                    (StatusCode::INTERNAL_SERVER_ERROR, LOST).into_response()
                }
                Self::Body(error) => error.into_response(),
            }
        }
    }
}
