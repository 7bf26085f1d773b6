use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{Clock, Instant, StoreError, StoreErrorKind, within};
use leasehold_redis::classify::{NOT_THERE, classify, spoils_connection};
use redis::{Cmd, FromRedisValue, RedisError, Value, aio::MultiplexedConnection};

use crate::facts::{NotRead, Reading};

/// What all answers of one examined server may take beside two command timeouts: the questions are
/// many, and the network may be slow.
const EXAMINATION: Duration = Duration::from_secs(5);

/// Asks one server, on a connection that nothing else uses.
pub(super) struct ServerClient {
    pub(super) connection: MultiplexedConnection,
    pub(super) clock: Arc<dyn Clock>,
    /// How long one answer may take.
    pub(super) patience: Duration,
    /// When no more is asked.
    deadline: Instant,
    /// Whether an answer is missing: what was asked later would wait behind it.
    is_silent: AtomicBool,
}

impl ServerClient {
    /// A client that takes at most twice its patience, and [`EXAMINATION`] besides.
    pub(super) fn new(
        connection: MultiplexedConnection,
        clock: Arc<dyn Clock>,
        patience: Duration,
    ) -> Self {
        let deadline = clock.now() + patience.saturating_mul(2).saturating_add(EXAMINATION);
        Self { connection, clock, patience, deadline, is_silent: AtomicBool::new(false) }
    }

    /// Sends one command. Several may be under way.
    pub(super) async fn ask(&self, command: &Cmd) -> Reading<Value> {
        let mut connection = self.connection.clone();
        let answer = self.in_time(command.query_async(&mut connection)).await;
        answer?.map_err(|error| not_read(&error))
    }

    /// The answer to a command as a type of the client library.
    pub(super) async fn ask_for<T: FromRedisValue>(&self, command: &Cmd) -> Reading<T> {
        redis::from_redis_value(self.ask(command).await?).map_err(|_| NotRead::Strange)
    }

    /// Whether an answer is missing.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Waits for an answer until it is too late for it.
    pub(super) async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Reading<T> {
        if self.is_silent() {
            return Err(NotRead::Silent);
        }
        let until = self.deadline.min(self.clock.now() + self.patience);
        let answer = within(&*self.clock, until, answer).await;
        answer.ok_or_else(|| {
            self.is_silent.store(true, Ordering::Relaxed);
            NotRead::Silent
        })
    }
}

/// A server that fell silent.
pub(super) fn unanswered() -> StoreError {
    let what = "the server did not answer in time";
    StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
}

/// Why a command has no answer.
fn not_read(error: &RedisError) -> NotRead {
    if spoils_connection(error) {
        return NotRead::Silent;
    }
    let words = classify(error).what().to_owned();
    let has = |some: &[&str]| some.iter().any(|some| words.contains(some));
    if has(&["NOPERM", "has no permissions"]) {
        NotRead::Denied
    } else if has(&["unknown command", "nknown subcommand"]) {
        // Its words repeat what was sent.
        NotRead::Missing
    } else {
        NotRead::Refused(words)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::make_extension_error;

    use super::*;

    #[test]
    fn refusals_are_told_apart() {
        for (code, detail, why) in [
            ("NOPERM", "this user has no permissions to run the 'info' command", NotRead::Denied),
            ("ERR", "unknown command 'CONFIG', with args beginning with: ", NotRead::Missing),
            ("ERR", "Unknown subcommand or wrong number of arguments", NotRead::Missing),
            ("ERR", "unknown subcommand 'x'. Try CONFIG HELP.", NotRead::Missing),
            ("LOADING", "Redis is loading", NotRead::Refused("LOADING Redis is loading".into())),
        ] {
            let error = make_extension_error(code.into(), Some(detail.into()));
            assert_eq!(not_read(&error), why, "{code} {detail}");
        }
        let cut = RedisError::from(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(not_read(&cut), NotRead::Silent);
    }
}
