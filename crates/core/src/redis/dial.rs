use std::{fmt, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, RedisError, Value,
    aio::MultiplexedConnection,
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

use super::{classify::classify_dial, config::RedisConfig, preflight::check_version};
use crate::store::StoreError;

/// Makes connections to one server, each set up alike.
pub(super) struct Dialer {
    client: Client,
    connect_timeout: Duration,
    client_name: String,
    endpoint: Arc<str>,
}

impl Dialer {
    pub(super) fn new(config: &RedisConfig) -> Result<Self, StoreError> {
        let endpoint: Arc<str> = config.address.to_string().into();
        let client = client(config)
            .map_err(|error| classify_dial(&error).from_endpoint(endpoint.to_string()))?;
        Ok(Self {
            client,
            connect_timeout: config.connect_timeout,
            client_name: config.client_name.clone(),
            endpoint,
        })
    }

    /// The server's address without credentials.
    pub(super) fn endpoint(&self) -> &Arc<str> {
        &self.endpoint
    }

    /// How connections are to be made, for the pool.
    pub(super) fn connection_info(&self) -> &redis::ConnectionInfo {
        self.client.get_connection_info()
    }

    /// How long a dial may take; the caller sees to it.
    pub(super) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Connects, checks the server's version, and gives the connection a name.
    ///
    /// The connection has no timeout of its own: every call on it has a deadline.
    pub(super) async fn dial(&self) -> Result<MultiplexedConnection, StoreError> {
        let config = connection_config(self.connect_timeout, None);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await.map_err(|error| classify_dial(&error))?;
        let hello = redis::cmd("HELLO").query_async::<Value>(&mut connection).await;
        check_version(hello)?;
        name_connection(&mut connection, &self.client_name).await;
        Ok(connection)
    }
}

/// Tells the server a name for its list of clients; a refusal does not matter.
pub(super) async fn name_connection(connection: &mut MultiplexedConnection, name: &str) {
    let _ = redis::cmd("CLIENT").arg("SETNAME").arg(name).query_async::<Value>(connection).await;
}

/// Timeouts of a connection; the client library's own are too short for a busy server.
pub(super) fn connection_config(
    connect: Duration,
    response: Option<Duration>,
) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(Some(connect))
        .set_response_timeout(response)
}

fn client(config: &RedisConfig) -> Result<Client, RedisError> {
    let info = config.address.info().clone();
    let settings = info.redis_settings().clone().set_skip_set_lib_name();
    let info = info.set_redis_settings(settings).set_tcp_settings(tcp_settings());
    #[cfg(feature = "tls")]
    if config.address.is_tls() {
        return config.tls.client(info);
    }
    Client::open(info)
}

/// No batching of small packets, and a dead peer is noticed in seconds instead of minutes.
fn tcp_settings() -> TcpSettings {
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(5)).with_interval(Duration::from_secs(1));
    #[cfg(not(windows))]
    let keepalive = keepalive.with_retries(3);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(Duration::from_secs(10));
    settings
}

/// Without the client, which shows the user's name.
impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
