use redis::RedisError;

use super::classify::{SHUT, classify_dial};
use crate::store::{StoreError, StoreErrorKind};

/// Why a connection was not made.
#[derive(Debug)]
pub(super) struct NotDialed {
    pub(super) error: StoreError,
    /// The server took the connection, and it ended before it was set up: another attempt may
    /// succeed at once.
    pub(super) was_cut: bool,
}

impl NotDialed {
    /// What the client library met while it connected or set the connection up.
    pub(super) fn because(error: &RedisError) -> Self {
        let was_cut = error.is_connection_dropped() && !error.is_connection_refusal();
        Self { error: classify_dial(error), was_cut }
    }

    /// A connection that was made, and ended before anybody used it.
    pub(super) fn ended() -> Self {
        let what = "cannot connect to Redis: the connection ended as soon as it was made";
        Self { error: StoreError::new(StoreErrorKind::Definite, what, SHUT), was_cut: true }
    }

    /// The deadline came first.
    pub(super) fn in_time() -> Self {
        let error = StoreError::new(
            StoreErrorKind::Definite,
            "cannot connect to Redis: no connection could be made in time",
            "check that the server runs and the address is right",
        );
        Self { error, was_cut: false }
    }
}

impl From<StoreError> for NotDialed {
    fn from(error: StoreError) -> Self {
        Self { error, was_cut: false }
    }
}
