//! Why a connection was not made.

use std::{error::Error, io, sync::Arc};

use leasehold_core::{StoreError, StoreErrorKind::Definite};
use redis::RedisError;

/// What to do about a server that does not answer.
pub const NOT_THERE: &str = "check that the server runs and the address is right";
/// The same if it may be slow.
pub(super) const NOT_IN_TIME: &str = "check that the server runs and the address is right; a slow network needs a longer connect_timeout()";
/// The same if it has answered before.
const SLOW: &str = "the server answers too slowly, or a proxy before it does not pass the command on; a slow network \
     needs a longer connect_timeout()";
pub(super) const SHUT: &str = "it may have reached its maxclients, expect TLS (rediss://), be a proxy that does not know HELLO, or \
     may not be a Redis server";

/// The error of another library, or of ours, within one of the client library.
pub(super) fn carried<T: Error + 'static>(error: &RedisError) -> Option<&T> {
    let source = error.source()?;
    let shared = source.downcast_ref::<Arc<dyn Error + Send + Sync>>();
    let io = match shared {
        Some(shared) => shared.downcast_ref::<io::Error>(),
        None => source.downcast_ref::<io::Error>(),
    };
    io?.get_ref()?.downcast_ref()
}

/// Why a connection was not made.
#[derive(Debug)]
pub(super) struct NotDialed {
    pub(super) error: StoreError,
    /// The connection ended before it was set up: another attempt may succeed at once.
    pub(super) was_cut: bool,
    /// What answers does not speak Redis' protocol, or not all of it.
    pub(super) is_foreign: bool,
    /// A certificate or a setting of TLS was refused.
    pub(super) is_of_tls: bool,
}

impl NotDialed {
    /// The same, for an address that may have led to Redis before. If it has, a proxy may answer in its place
    /// for a while, as during a failover, and certificates may be about to be renewed.
    pub(super) fn for_now_if(mut self, has_worked: bool) -> Self {
        if has_worked && (self.is_foreign || self.is_of_tls) {
            let (what, remedy) = (self.error.what().to_owned(), self.error.remedy().to_owned());
            let remedy = if self.is_foreign { NOT_THERE.into() } else { remedy };
            self.error = StoreError::new(Definite, what, remedy);
        }
        self
    }

    /// A connection that was made, and ended before anybody used it.
    pub(super) fn ended() -> Self {
        let what = "cannot connect to Redis: the connection ended as soon as it was made";
        Self { was_cut: true, ..StoreError::new(Definite, what, SHUT).into() }
    }

    /// The deadline came first, while the answer to a command behind `HELLO` was awaited, if any.
    pub(super) fn in_time_at(command: Option<&str>) -> Self {
        let Some(command) = command else { return Self::in_time() };
        let what = format!(
            "cannot connect to Redis: HELLO was answered, and {command} was not answered in time"
        );
        StoreError::new(Definite, what, SLOW).into()
    }

    /// The deadline came first.
    pub(super) fn in_time() -> Self {
        let what = "cannot connect to Redis: no connection could be made in time";
        StoreError::new(Definite, what, NOT_IN_TIME).into()
    }
}

impl From<StoreError> for NotDialed {
    fn from(error: StoreError) -> Self {
        Self { error, was_cut: false, is_foreign: false, is_of_tls: false }
    }
}
