//! How a service answers over HTTP when a gate has not admitted its write.

use std::time::Duration;

use leasehold_core::{RETRY_LATER, RETRY_SOON, StoreErrorKind};

use crate::GateError;

impl GateError {
    /// The status of HTTP with which a service answers its client, who has no lease. Default for a variant that
    /// is new: 500.
    ///
    /// | variant | status | because |
    /// |---|---|---|
    /// | `Stale` | 409 | a later holder has come: nothing was written, and the client may try again |
    /// | `Conflict` | 503 | another transaction came between: nothing was written |
    /// | `Store`, of kind `Definite` | 503 | the storage failed before the write |
    /// | `Resource` | 400 | the gate cannot guard this key, such as one with braces from a client |
    /// | `Store` of other kinds | 500 | the write was made, or was not; or an operator has to act |
    /// | all others | 500 | an operator has to act |
    ///
    /// A service that is called by holders answers 412 to a stale fence, as the layer of the feature `tower` does.
    pub fn status(&self) -> u16 {
        match self {
            Self::Stale(_) => 409,
            Self::Conflict(_) => 503,
            Self::Store(error) if error.kind() == StoreErrorKind::Definite => 503,
            Self::Resource(_) => 400,
            _ => 500,
        }
    }

    /// When the client may try again, for the header `Retry-After`: 1 s after a `Stale` or a `Conflict`, 5 s after
    /// a failure of the storage; `None` for a status of 400 or 500.
    pub fn retry_after(&self) -> Option<Duration> {
        match (self, self.status()) {
            (Self::Stale(_) | Self::Conflict(_), _) => Some(RETRY_SOON),
            (_, 503) => Some(RETRY_LATER),
            _ => None,
        }
    }
}

#[cfg(feature = "axum")]
mod response {
    use axum_core::response::{IntoResponse, Response};
    use http::{StatusCode, header::RETRY_AFTER};

    use crate::GateError;

    /// The status, `Retry-After`, and a text for the client, which names no key and no lease. A status of 500 is
    /// told in the log, with the error.
    impl IntoResponse for GateError {
        fn into_response(self) -> Response {
            let status = StatusCode::from_u16(self.status());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let text = match status {
                StatusCode::CONFLICT => "nothing was written: try again",
                StatusCode::SERVICE_UNAVAILABLE => "nothing was written: try again later",
                StatusCode::BAD_REQUEST => "nothing was written: the name cannot be used",
                _ => "find out what was written before you try again",
            };
            if status == StatusCode::INTERNAL_SERVER_ERROR {
                tracing::error!(error = %self, "a request is answered with status 500");
            }
            match self.retry_after() {
                Some(after) => (status, [(RETRY_AFTER, after.as_secs())], text).into_response(),
                None => (status, text).into_response(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::StoreError;
    use leasehold_testing::stamp;

    use super::*;
    use crate::{ResourceError, StaleFence, TransactionConflict};

    fn store(kind: StoreErrorKind) -> GateError {
        StoreError::new(kind, "the connection broke", "try again").into()
    }

    fn errors() -> Vec<(GateError, u16, Option<Duration>)> {
        let (presented, highest) = (stamp(41, 1), stamp(42, 2));
        let stale = StaleFence { presented, highest, resource: "accounts/7".into() };
        let (kind, text) = (crate::ConflictKind::Deadlock, || "a deadlock".into());
        let conflict = TransactionConflict { kind, during: text(), message: text() };
        vec![
            (stale.into(), 409, Some(RETRY_SOON)),
            (conflict.into(), 503, Some(RETRY_SOON)),
            (store(StoreErrorKind::Definite), 503, Some(RETRY_LATER)),
            (store(StoreErrorKind::Indeterminate), 500, None),
            (store(StoreErrorKind::Config), 500, None),
            (ResourceError::Empty.into(), 400, None),
        ]
    }

    #[test]
    fn only_what_may_be_tried_again_says_when() {
        for (error, status, after) in errors() {
            assert_eq!((error.status(), error.retry_after()), (status, after), "{error}");
        }
    }

    #[cfg(feature = "axum")]
    #[test]
    fn an_answer_has_the_status_and_when_to_try_again_and_names_no_key() {
        use axum_core::response::IntoResponse;
        use http_body_util::BodyExt;

        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (error, status, after) in errors() {
            let response = error.into_response();
            assert_eq!(response.status().as_u16(), status);
            let told = response.headers().get("retry-after").map(|value| value.to_str().unwrap());
            assert_eq!(told.map(str::to_owned), after.map(|after| after.as_secs().to_string()));
            let body = runtime.block_on(response.into_body().collect()).unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            assert!(!body.is_empty() && !body.contains("accounts/7"), "{body}");
        }
    }
}
