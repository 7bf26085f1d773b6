use std::{future::pending, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt;
use leasehold_core::{Clock, Instant, Mutex, StoreError, StoreErrorKind, within};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, ProtocolVersion,
    RedisConnectionInfo, RedisError, Value, aio::MultiplexedConnection,
};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::{net::TcpStream, select};

use super::{
    classify::{classify_dial, is_login},
    config::RedisConfig,
    credentials::CredentialsProvider,
    needed::not_dialed,
    not_dialed::{GREETING, NotDialed},
    role::not_greeted,
    tls::{self, TlsSettings},
};
use crate::durations::PATIENCE;

/// How a connection is set up: its credentials, its certificates, its database and its name. The client library sends
/// user and password of the address in its `HELLO`; a provider is asked for each connection.
#[derive(Clone)]
pub(super) struct Login {
    provider: Option<Arc<dyn CredentialsProvider>>,
    tls: TlsSettings,
    db: i64,
    client_name: String,
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
        (
            Self { provider, tls: config.tls.clone(), db, client_name },
            info.clone().set_redis_settings(settings),
        )
    }

    /// The client that makes the next connection: the given one, with the credentials of a provider, and
    /// with the certificates that there are now. `Definite` when the provider fails, or has no answer by the
    /// deadline, or when the certificates cannot be used any more, or are not read by then.
    pub(super) async fn client(
        &self,
        client: &Client,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Client, StoreError> {
        let info = client.get_connection_info().clone();
        let info = self.with_credentials(info, clock, deadline).await?;
        let made = within(clock, deadline, self.tls.client(info)).await;
        made.unwrap_or_else(|| {
            let what = "cannot connect to Redis: the certificates were not read in time";
            Err(StoreError::new(StoreErrorKind::Definite, what, READ_AGAIN).ours())
        })
    }

    async fn with_credentials(
        &self,
        info: ConnectionInfo,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<ConnectionInfo, StoreError> {
        let Some(provider) = &self.provider else { return Ok(info) };
        let asked_at = clock.now();
        // The provider is code of others: its panic must not look like the end of the tokio
        // runtime.
        let asking = AssertUnwindSafe(async { provider.credentials().await }).catch_unwind();
        let how = match within(clock, deadline, asking).await {
            Some(Ok(Ok(credentials))) => return Ok(credentials.on(info)),
            Some(Ok(Err(error))) => format!("failed: {error}"),
            Some(Err(_panic)) => "panicked".into(),
            None => {
                let waited = clock.now().saturating_since(asked_at).as_millis();
                format!("did not answer within {waited} ms")
            }
        };
        let what = format!("cannot connect to Redis: the credentials provider {how}");
        // The server was not even asked.
        Err(StoreError::new(StoreErrorKind::Definite, what, GIVEN_AGAIN).ours())
    }

    /// Connects, and logs in. It is noted whether the answer to the first command is awaited.
    pub(super) async fn connect(
        &self,
        client: &Client,
        config: &AsyncConnectionConfig,
        clock: &dyn Clock,
        asked: &Mutex<Option<&'static str>>,
    ) -> Result<MultiplexedConnection, NotDialed> {
        let info = client.get_connection_info();
        let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let looking = async {
            clock.sleep_until(clock.now() + PATIENCE).await;
            if is_tls {
                return TlsSettings::answered_without(info).await;
            }
            // The client library does not tell whether it waits for a connection, or for an answer.
            if is_accepted(info.addr()).await {
                *asked.lock() = Some(GREETING);
            }
            pending().await
        };
        let connected = select! {
            biased;
            connected = client.get_multiplexed_async_connection_with_config(config) => connected,
            has_no_tls = looking => return Err(has_no_tls),
        };
        // The client library asks for RESP3 before anything else.
        connected.map_err(|error| match self.refused(&error) {
            Some(refused) => refused.into(),
            None if error.is_timeout() && asked.lock().is_some() => {
                NotDialed::in_time_at(*asked.lock())
            }
            None => tls::told(self.tls.given(), is_tls, &error)
                .unwrap_or_else(|| not_greeted(error).at_socket(info.addr())),
        })
    }

    /// Which commands set a connection up.
    pub(super) fn sets_up_by(&self) -> &'static str {
        if self.db == 0 { "CLIENT" } else { "SELECT or CLIENT" }
    }

    /// Selects the database, and sets the name of the connection. A refusal of the name is ignored. Returns
    /// whether the answer is one to that, and not one to the command behind it: a proxy may swallow commands.
    pub(super) async fn set_up(
        &self,
        connection: &mut MultiplexedConnection,
    ) -> Result<bool, NotDialed> {
        if self.db != 0 {
            let select = redis::cmd("SELECT").arg(self.db).take();
            let selected = select.query_async::<Value>(connection).await;
            selected.map_err(|error| not_dialed("SELECT", error))?;
        }
        let name = redis::cmd("CLIENT").arg("SETNAME").arg(&self.client_name).take();
        match name.query_async::<Value>(connection).await {
            Err(error) if error.is_connection_dropped() => Err(not_dialed("CLIENT", error)),
            told => Ok(!told.is_ok_and(|told| told != Value::Okay)),
        }
    }

    /// The error if the server has refused a provider's credentials: unlike a refused password of
    /// the address, it needs no operator, as the provider may give others next time.
    fn refused(&self, error: &RedisError) -> Option<StoreError> {
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
}

/// Whether a connection to an address can be made.
async fn is_accepted(address: &ConnectionAddr) -> bool {
    match address {
        ConnectionAddr::Tcp(host, port) => TcpStream::connect((host.as_str(), *port)).await.is_ok(),
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => UnixStream::connect(path).await.is_ok(),
        _ => false,
    }
}

/// What to do if certificates are not read in time.
const READ_AGAIN: &str = "check the disk, or the function, that they come from; they are read again for the next connection";
/// What to do after a failure of a provider, which says itself what it needs.
const GIVEN_AGAIN: &str = "it is asked again for the next connection";
/// What to do about what a provider gave.
const ASKED_AGAIN: &str =
    "the provider is asked again for the next connection; see what it says if it stays";
