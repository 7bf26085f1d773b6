use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use redis::{PushInfo, Value, aio::MultiplexedConnection};
use tokio::select;

use super::{backoff::Backoff, ear::Ear};
use crate::{
    clock::Clock,
    entropy::Entropy,
    redis::{
        classify::{classify_dial, spoils_connection},
        dial::Dialer,
        within::within,
    },
    store::{Listener, StoreError, StoreErrorKind},
};

/// How often a silent connection is asked whether it still works, and the listener whether it
/// still lives.
const CHECK: Duration = Duration::from_secs(2);

/// How long the answer may take.
const ANSWER: Duration = Duration::from_secs(3);

/// Keeps one listener subscribed to one channel, on one connection at a time.
///
/// A connection that was cut is noticed at once; one that is half open by a `PING` that is not
/// answered, within five seconds, or earlier by the limits on its socket.
#[derive(Debug, Clone)]
pub(super) struct Subscriber {
    pub(super) dialer: Arc<Dialer>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) channel: String,
    pub(super) listener: Weak<dyn Listener>,
}

impl Subscriber {
    /// Runs for as long as the listener lives.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub(super) async fn run(self) {
        let mut backoff = Backoff::default();
        while self.is_wanted() {
            let pause = match self.subscribe().await {
                Ok((connection, ear)) => {
                    self.log_return(backoff);
                    backoff = Backoff::default();
                    self.attend(connection, &ear).await;
                    tracing::debug!(endpoint = %self.dialer.endpoint(), "a subscription ended");
                    // Not counted: the next attempt is the first that may fail.
                    Backoff::default().failed(self.entropy.fraction())
                }
                Err(error) => self.pause_after(&error, &mut backoff),
            };
            self.rest(pause).await;
        }
    }

    /// Subscribes on a connection of its own, whose messages go to the ear.
    async fn subscribe(&self) -> Result<(MultiplexedConnection, Arc<Ear>), StoreError> {
        let ear = Arc::new(Ear::new(Weak::clone(&self.listener)));
        let hearing = Arc::clone(&ear);
        let heard = move |push: PushInfo| {
            hearing.hear(&push);
            Ok::<(), ()>(())
        };
        let subscribing = subscribe(&self.dialer, &*self.clock, &self.channel, heard);
        Ok((subscribing.await?, ear))
    }

    /// Stays with a connection until it is lost, or nobody listens.
    async fn attend(&self, mut connection: MultiplexedConnection, ear: &Ear) {
        loop {
            select! {
                biased;
                () = ear.deaf() => return,
                () = self.clock.sleep_until(self.clock.now() + CHECK) => {}
            }
            if !self.is_wanted() || !self.is_alive(&mut connection).await {
                return;
            }
        }
    }

    /// Whether the connection answers; a refusal is an answer.
    async fn is_alive(&self, connection: &mut MultiplexedConnection) -> bool {
        let ping = redis::cmd("PING");
        let answer = ping.query_async::<Value>(connection);
        let answer = within(&*self.clock, self.clock.now() + ANSWER, answer).await;
        answer.is_some_and(|answer| !answer.as_ref().is_err_and(spoils_connection))
    }

    fn is_wanted(&self) -> bool {
        self.listener.strong_count() > 0
    }

    /// Sleeps, but not past the end of the listener by more than a check.
    async fn rest(&self, pause: Duration) {
        let until = self.clock.now() + pause;
        while self.is_wanted() && self.clock.now() < until {
            self.clock.sleep_until(until.min(self.clock.now() + CHECK)).await;
        }
    }

    /// Logs the first failure of a row, and every refusal, which is tried again seldom.
    fn pause_after(&self, error: &StoreError, backoff: &mut Backoff) -> Duration {
        const WHAT: &str = "the runtime cannot hear the server; waiting goes on by heartbeat";
        let first = backoff.is_fresh();
        let fraction = self.entropy.fraction();
        if error.kind() == StoreErrorKind::Config {
            tracing::warn!(%error, "{WHAT}");
            return backoff.refused(fraction);
        }
        if first {
            tracing::warn!(%error, "{WHAT}");
        } else {
            tracing::debug!(%error, "{WHAT}");
        }
        backoff.failed(fraction)
    }

    fn log_return(&self, backoff: Backoff) {
        if !backoff.is_fresh() {
            tracing::info!(endpoint = %self.dialer.endpoint(), "the runtime hears the server again");
        }
    }
}

/// Makes a connection that brings what is published on a channel.
pub(super) async fn subscribe(
    dialer: &Dialer,
    clock: &dyn Clock,
    channel: &str,
    heard: impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static,
) -> Result<MultiplexedConnection, StoreError> {
    let deadline = clock.now() + dialer.connect_timeout() + dialer.connect_timeout();
    let subscribing = async {
        let mut connection = dialer.dial_for_pushes(clock, heard).await?;
        connection.subscribe(channel).await.map_err(|error| classify_dial(&error))?;
        Ok(connection)
    };
    let subscribed = within(clock, deadline, Box::pin(subscribing)).await.unwrap_or_else(too_late);
    subscribed.map_err(|error| error.from_endpoint(dialer.endpoint().to_string()))
}

fn too_late<T>() -> Result<T, StoreError> {
    Err(StoreError::new(
        StoreErrorKind::Definite,
        "cannot subscribe: the server did not answer in time",
        "check that the server runs and the address is right",
    ))
}
