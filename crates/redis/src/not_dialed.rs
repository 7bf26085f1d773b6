//! Why a connection was not made.

use std::{error::Error, io, sync::Arc};

use leasehold_core::{
    StoreError,
    StoreErrorKind::{Config, Definite},
};
use redis::{ConnectionAddr, RedisError};

/// What to do about a server that does not answer.
pub const NOT_THERE: &str = "check that the server runs and the address is right";
/// The same if it may be slow.
pub(super) const NOT_IN_TIME: &str = "check that the server runs and the address is right; a slow network needs a longer connect_timeout()";
/// The same if it has answered before.
const SLOW: &str = "the server answers too slowly, or a proxy before it does not pass the command on; a slow network \
     needs a longer connect_timeout()";
/// The same if it has accepted, and answered nothing.
const STILL: &str = "the server stands still (it is stopped, or busy), a proxy before it does not pass HELLO on, or what \
     accepts is not a Redis server";
/// The command that begins each connection.
pub(super) const GREETING: &str = "HELLO";
pub(super) const SHUT: &str = "it may have reached its maxclients, expect TLS (rediss://), be a proxy that does not know HELLO, or \
     may not be a Redis server";

/// What to do about a socket that this process has no right to.
pub(super) const READ_SOCKET: &str = "let this process read and write the server's socket";

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
    /// A certificate, a setting of TLS, or the right to a socket was refused.
    pub(super) is_of_setup: bool,
}

impl NotDialed {
    /// The same, for an address that may have led to Redis before. If it has, a proxy may answer in its place
    /// for a while, as during a failover, and certificates and rights may be about to be renewed.
    pub(super) fn for_now_if(mut self, has_worked: bool) -> Self {
        if has_worked && (self.is_foreign || self.is_of_setup) {
            let (what, remedy) = (self.error.what().to_owned(), self.error.remedy().to_owned());
            let remedy = if self.is_foreign { NOT_THERE.into() } else { remedy };
            self.error = StoreError::new(Definite, what, remedy);
        }
        self
    }

    /// The same, which lasts if the system refuses the socket of the server.
    pub(super) fn at_socket(mut self, address: &ConnectionAddr) -> Self {
        let denied = ["(os error 13)", "(os error 1)"];
        if matches!(address, ConnectionAddr::Unix(_))
            && denied.iter().any(|code| self.error.what().contains(code))
        {
            let what = self.error.what().to_owned();
            self.error = StoreError::new(Config, what, READ_SOCKET);
            self.is_of_setup = true;
        }
        self
    }

    /// A connection that was made, and ended before anybody used it.
    pub(super) fn ended() -> Self {
        let what = "cannot connect to Redis: the connection ended as soon as it was made";
        Self { was_cut: true, ..StoreError::new(Definite, what, SHUT).into() }
    }

    /// The deadline came first, while the answer to a command was awaited, if any.
    pub(super) fn in_time_at(command: Option<&str>) -> Self {
        let Some(command) = command else { return Self::in_time() };
        if command == GREETING {
            let what = "cannot connect to Redis: the connection was accepted, and HELLO was not answered in time";
            return StoreError::new(Definite, what, STILL).into();
        }
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
        Self { error, was_cut: false, is_foreign: false, is_of_setup: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_without_permission_is_wrong_unless_it_has_worked_before() {
        let socket = ConnectionAddr::Unix("/run/redis.sock".into());
        let failed = |code| NotDialed::from(RedisError::from(io::Error::from_raw_os_error(code)));
        for code in [1, 13] {
            let failed = || failed(code).at_socket(&socket);
            assert_eq!(failed().error.kind(), Config, "{code}");
            assert_eq!(failed().error.remedy(), READ_SOCKET);
            // A server that starts again makes its socket, and then lets others use it.
            assert_eq!(failed().for_now_if(true).error.kind(), Definite, "{code}");
        }
        // Controls: a firewall refuses, and a server is not there.
        let server = ConnectionAddr::Tcp("h".into(), 1);
        assert_eq!(failed(13).at_socket(&server).error.kind(), Definite);
        assert_eq!(failed(2).at_socket(&socket).error.kind(), Definite);
    }
}
