use std::{fmt, sync::Arc, time::Duration};

use redis::{
    AsyncConnectionConfig, Client,
    aio::{AsyncPushSender, MultiplexedConnection},
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};

use super::{
    classify::{NotDialed, classify_dial},
    config::RedisConfig,
    login::Login,
    preflight::{check_server, not_greeted},
};
use crate::{
    clock::{Clock, Instant, within},
    store::{StoreError, StoreErrorKind},
};

/// Makes connections to one server, each set up alike.
pub(super) struct Dialer {
    pub(super) client: Client,
    pub(super) login: Login,
    /// How long a dial may take.
    pub(super) connect_timeout: Duration,
    cluster_node: bool,
    /// The server's address without credentials.
    pub(super) endpoint: Arc<str>,
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
        let (login, info) = Login::split_off(config);
        let info = info.set_tcp_settings(tcp_settings());
        #[cfg(feature = "tls")]
        let client = config.tls.client(info);
        #[cfg(not(feature = "tls"))]
        let client = Client::open(info);
        let client = client.map_err(|error| classify_dial(&error).from_endpoint(&*endpoint))?;
        let (connect_timeout, cluster_node) = (config.connect_timeout, config.cluster_node);
        Ok(Self { client, login, connect_timeout, cluster_node, endpoint })
    }

    /// Connects, logs in, and checks that the server is a master of a supported version, by the deadline.
    ///
    /// Pushes of the server go to `heard`, and at last the end of the connection. The connection has no
    /// timeout of its own: every call on it has a deadline.
    pub(super) async fn dial(
        &self,
        clock: &dyn Clock,
        deadline: Instant,
        heard: impl AsyncPushSender,
    ) -> Result<Dialed, NotDialed> {
        let client = self.login.client(&self.client, clock, deadline).await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(None)
            .set_push_sender(heard);
        let dialing = async {
            let connecting = client.get_multiplexed_async_connection_with_config(&config);
            let mut connection = connecting.await.map_err(|error| {
                // The client library asks for RESP3 before anything else.
                self.login.refused(&error).map_or_else(|| not_greeted(&error), NotDialed::from)
            })?;
            let connected_at = clock.now();
            // First what the server is: Clusters and Sentinels refuse to select a database.
            check_server(&mut connection, self.cluster_node).await?;
            let checked_at = clock.now();
            let set_up = self.login.set_up(&mut connection).await;
            set_up.map_err(|error| NotDialed::because(&error))?;
            // The shorter of two: the server may have been busy during the other one.
            let round_trip = checked_at
                .saturating_since(connected_at)
                .min(clock.now().saturating_since(checked_at));
            Ok(Dialed { connection, round_trip })
        };
        within(clock, deadline, Box::pin(dialing)).await.unwrap_or(Err(NotDialed::in_time()))
    }
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
