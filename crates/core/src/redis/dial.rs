use std::{fmt, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, RedisError,
    aio::{AsyncPushSender, MultiplexedConnection},
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

use super::{
    classify::{NotDialed, classify_dial},
    config::RedisConfig,
    login::{Login, LoginError},
    preflight::{check_server, is_too_old, too_old},
};
use crate::{
    clock::{Clock, Instant, within},
    store::{StoreError, StoreErrorKind},
};

/// Makes connections to one server, each set up alike.
pub(super) struct Dialer {
    client: Client,
    login: Login,
    connect_timeout: Duration,
    cluster_node: bool,
    endpoint: Arc<str>,
}

/// A connection that is ready for commands.
pub(super) struct Dialed {
    pub(super) connection: MultiplexedConnection,
    /// How long the server took to answer a command that costs it nothing.
    pub(super) round_trip: Duration,
}

impl Dialer {
    pub(super) fn new(config: &RedisConfig) -> Result<Self, StoreError> {
        config.check().map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "correct the setting")
        })?;
        let endpoint: Arc<str> = config.address.to_string().into();
        let provider = config.credentials.as_ref().map(|provider| Arc::clone(&provider.0));
        let (login, info) = Login::split_off(config.address.info(), provider, &config.client_name);
        let client = client(config, info)
            .map_err(|error| classify_dial(&error).from_endpoint(endpoint.to_string()))?;
        let (connect_timeout, cluster_node) = (config.connect_timeout, config.cluster_node);
        Ok(Self { client, login, connect_timeout, cluster_node, endpoint })
    }

    /// The server's address without credentials.
    pub(super) fn endpoint(&self) -> &Arc<str> {
        &self.endpoint
    }

    /// How connections are to be made, for the pool.
    pub(super) fn connection_info(&self) -> ConnectionInfo {
        self.login.of_pool(self.client.get_connection_info())
    }

    /// How connections are to be set up once they are made, for the pool.
    pub(super) fn login(&self) -> &Login {
        &self.login
    }

    /// How long a dial may take.
    pub(super) fn connect_timeout(&self) -> Duration {
        self.connect_timeout
    }

    /// Connects, logs in, and checks that the server is a master of a supported version, all
    /// of it by the deadline.
    ///
    /// Pushes of the server go to `heard`, and at last the end of the connection.
    /// The connection has no timeout of its own: every call on it has a deadline.
    pub(super) async fn dial(
        &self,
        clock: &dyn Clock,
        deadline: Instant,
        heard: impl AsyncPushSender,
    ) -> Result<Dialed, NotDialed> {
        self.dial_with(&self.login, clock, deadline, heard).await
    }

    /// Connects likewise, to subscribe. No database is selected: channels have none.
    pub(super) async fn dial_for_pushes(
        &self,
        clock: &dyn Clock,
        heard: impl AsyncPushSender,
    ) -> Result<MultiplexedConnection, StoreError> {
        let deadline = clock.now() + self.connect_timeout;
        let login = self.login.without_database();
        let dialed = self.dial_with(&login, clock, deadline, heard).await;
        dialed.map(|dialed| dialed.connection).map_err(|not_dialed| not_dialed.error)
    }

    async fn dial_with(
        &self,
        login: &Login,
        clock: &dyn Clock,
        deadline: Instant,
        heard: impl AsyncPushSender,
    ) -> Result<Dialed, NotDialed> {
        let config = connection_config(self.connect_timeout, None).set_push_sender(heard);
        let client = login.client(&self.client, clock, deadline).await?;
        let dialing = self.dial_by(&client, login, clock, config);
        within(clock, deadline, Box::pin(dialing)).await.unwrap_or(Err(NotDialed::in_time()))
    }

    async fn dial_by(
        &self,
        client: &Client,
        login: &Login,
        clock: &dyn Clock,
        config: AsyncConnectionConfig,
    ) -> Result<Dialed, NotDialed> {
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        let mut connection = connecting.await.map_err(|error| match login.refused(error) {
            LoginError::Provider(error) => error.into(),
            // The client library asks for RESP3 before anything else.
            LoginError::Other(error) if is_too_old(&error) => too_old("older than 6.2").into(),
            LoginError::Other(error) => NotDialed::because(&error),
        })?;
        let connected_at = clock.now();
        // First what the server is: Clusters and Sentinels refuse to select a database.
        check_server(&mut connection, self.cluster_node).await?;
        let checked_at = clock.now();
        login.set_up(&mut connection).await.map_err(|error| NotDialed::because(&error))?;
        // The shorter of two: the server may have been busy during the other one.
        let round_trip =
            checked_at.saturating_since(connected_at).min(clock.now().saturating_since(checked_at));
        Ok(Dialed { connection, round_trip })
    }
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

#[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "settings of TLS"))]
fn client(config: &RedisConfig, info: ConnectionInfo) -> Result<Client, RedisError> {
    let info = info.set_tcp_settings(tcp_settings());
    #[cfg(feature = "tls")]
    if config.address.is_tls() {
        return config.tls.client(info);
    }
    Client::open(info)
}

/// No delay of small packets, and a dead peer is noticed in seconds instead of minutes.
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
