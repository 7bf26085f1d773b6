use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use leasehold_core::{Clock, Instant, StoreError, StoreErrorKind, within};
use redis::{
    Client, ConnectionInfo, ProtocolVersion, RedisConnectionInfo, RedisError, Value,
    aio::MultiplexedConnection,
};

use super::{
    classify::{classify_dial, is_login},
    cluster::KnownNodes,
    config::RedisConfig,
    credentials::{Credentials, CredentialsProvider},
};

/// How a connection is set up: its credentials, its database and its name. The client library sends
/// user and password of the address in its `HELLO`; a provider is asked for each connection.
#[derive(Clone)]
pub(super) struct Login {
    provider: Option<Arc<dyn CredentialsProvider>>,
    db: i64,
    client_name: String,
    /// The nodes to one of which a connection has to lead.
    members: Option<Arc<KnownNodes>>,
}

impl Login {
    /// Splits off the settings that are sent later. The rest connects in RESP3, in which the client
    /// library reports the end of a connection.
    pub(super) fn split_off(config: &RedisConfig) -> (Self, ConnectionInfo) {
        let info = config.address.info();
        let provider = config.credentials.clone();
        let settings = match provider {
            Some(_) => RedisConnectionInfo::default(),
            None => info.redis_settings().clone().set_db(0),
        };
        let settings = settings.set_skip_set_lib_name().set_protocol(ProtocolVersion::RESP3);
        let (db, client_name) = (info.redis_settings().db(), config.client_name.clone());
        let members = config.node.as_ref().map(|node| Arc::clone(&node.members));
        (Self { provider, db, client_name, members }, info.clone().set_redis_settings(settings))
    }

    /// The client that makes the next connection: the given one, with the credentials of a
    /// provider.
    pub(super) async fn client(
        &self,
        client: &Client,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Client, StoreError> {
        match self.ask(clock, deadline).await? {
            None => Ok(client.clone()),
            Some(credentials) => {
                let info = credentials.on(client.get_connection_info().clone());
                Client::open(info).map_err(|error| classify_dial(&error))
            }
        }
    }

    /// Whether a connection leads to a node of the Cluster that is known, if it has to.
    pub(super) async fn is_member(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, RedisError> {
        match &self.members {
            Some(members) => members.has(connection).await,
            None => Ok(true),
        }
    }

    /// Selects the database, and sets the name of the connection. A refusal of the name is ignored.
    pub(super) async fn set_up(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<(), RedisError> {
        if self.db != 0 {
            redis::cmd("SELECT").arg(self.db).query_async::<Value>(connection).await?;
        }
        let name = redis::cmd("CLIENT").arg("SETNAME").arg(&self.client_name).take();
        let _ = name.query_async::<Value>(connection).await;
        Ok(())
    }

    /// The error if the server has refused a provider's credentials: unlike a refused password of
    /// the address, it needs no operator, as the provider may give others next time.
    pub(super) fn refused(&self, error: &RedisError) -> Option<StoreError> {
        self.provider.as_ref().filter(|_| is_login(error))?;
        let what = format!(
            "the server refused what the credentials provider gave: {}",
            classify_dial(error).what()
        );
        Some(
            StoreError::new(StoreErrorKind::Definite, what, ASKED_AGAIN)
                .as_answer()
                .refused_login(),
        )
    }

    /// Asks the provider, if there is one; `Definite` when it fails, or has no answer by the
    /// deadline.
    async fn ask(
        &self,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Option<Credentials>, StoreError> {
        let Some(provider) = &self.provider else { return Ok(None) };
        let asked_at = clock.now();
        let mut asking = pin!(async { provider.credentials().await });
        // The provider is code of others: its panic must not look like the end of the tokio
        // runtime.
        let answer = poll_fn(|cx| {
            let polled = catch_unwind(AssertUnwindSafe(|| asking.as_mut().poll(cx)));
            polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
        });
        match within(clock, deadline, answer).await {
            Some(Some(Ok(credentials))) => Ok(Some(credentials)),
            Some(Some(Err(error))) => Err(broken_provider(&format!("failed: {error}"))),
            Some(None) => Err(broken_provider("panicked")),
            None => {
                let waited = clock.now().saturating_since(asked_at).as_millis();
                Err(broken_provider(&format!("did not answer within {waited} ms")))
            }
        }
    }
}

fn broken_provider(how: &str) -> StoreError {
    let what = format!("cannot connect to Redis: the credentials provider {how}");
    StoreError::new(StoreErrorKind::Definite, what, ASKED_AGAIN)
}

/// What to do after a failure of a provider.
const ASKED_AGAIN: &str =
    "the provider is asked again for the next connection; see what it says if it stays";
