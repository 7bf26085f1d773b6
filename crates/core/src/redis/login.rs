use std::{
    error::Error,
    fmt,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use futures_util::future::{OptionFuture, join};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionInfo, ProtocolVersion, RedisConnectionInfo,
    RedisError, Value,
    aio::{AsyncPushSender, MultiplexedConnection},
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
    make_extension_error,
};
use tokio::{runtime::Handle, select, task::JoinSet};

use super::{
    classify::{NotDialed, classify_dial, is_login, is_readonly},
    cluster::{Members, UNKNOWN_NODE, unknown_node},
    config::RedisConfig,
    epochs::Epoch,
    one_master::{OneMaster, Witness, run_of},
    preflight::{REPLICA, check_server, not_greeted, replica_of},
    route::Route,
};
use crate::{
    clock::{Clock, Instant, within},
    store::{StoreError, StoreErrorKind},
};

/// How a connection is set up: its credentials, its database and its name. The client library sends
/// user and password of the address in its `HELLO`; a provider is asked for each connection.
#[derive(Clone)]
pub(super) struct Login {
    provider: Option<Arc<dyn CredentialsProvider>>,
    db: i64,
    client_name: String,
    /// The nodes to one of which a connection has to lead.
    members: Option<Arc<Members>>,
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

    /// How a pool connects, which has one client for all connections: without the credentials of a
    /// provider, and in RESP2, which needs no login to begin. That is enough: pooled connections
    /// get no pushes, the pool's `PING` finds one that has ended, and answers mean the same.
    pub(super) fn of_pool(&self, info: &ConnectionInfo) -> ConnectionInfo {
        if self.provider.is_none() {
            return info.clone();
        }
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        info.clone().set_redis_settings(settings)
    }

    /// Sets up a pooled connection: logs in with the provider's credentials, and checks that the
    /// server is a master of its Cluster, because a replica answers reads, too. Errors stay as they are, for
    /// [`refused`](Self::refused).
    pub(super) async fn set_up_pooled(
        &self,
        connection: &mut MultiplexedConnection,
        credentials: Option<Credentials>,
    ) -> Result<(), RedisError> {
        if let Some(credentials) = credentials {
            credentials.auth().query_async::<Value>(connection).await?;
        }
        self.set_up(connection).await?;
        match replica_of(connection).await? {
            None if self.is_member(connection).await? => Ok(()),
            None => Err(make_extension_error("CLUSTERDOWN".into(), Some(UNKNOWN_NODE.into()))),
            Some(master) => {
                let what = format!("{REPLICA} {master}");
                Err(make_extension_error("READONLY".into(), Some(what)))
            }
        }
    }

    /// Whether a connection leads to a node of the Cluster that is known, if it has to.
    async fn is_member(&self, connection: &mut MultiplexedConnection) -> Result<bool, RedisError> {
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
    pub(super) async fn ask(
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
pub(super) const ASKED_AGAIN: &str =
    "the provider is asked again for the next connection; see what it says if it stays";

/// A user and a password for one connection.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: Option<String>,
    password: String,
}

impl Credentials {
    /// A user and their password.
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: Some(user.into()), password: password.into() }
    }

    /// The password of the default user.
    pub fn password(password: impl Into<String>) -> Self {
        Self { user: None, password: password.into() }
    }

    /// The command that logs in, as `HELLO` does it: with the name of the default user. Without a
    /// name, a server on which that user has no password refuses any.
    pub(super) fn auth(&self) -> Cmd {
        let user = self.user.as_deref().unwrap_or("default");
        redis::cmd("AUTH").arg(user).arg(&self.password).take()
    }

    /// How to connect, with these credentials.
    pub(super) fn on(&self, info: ConnectionInfo) -> ConnectionInfo {
        let settings = info.redis_settings().clone().set_password(&self.password);
        let settings = match &self.user {
            Some(user) => settings.set_username(user),
            None => settings,
        };
        info.set_redis_settings(settings)
    }
}

/// Without the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Why a provider has no credentials at the moment.
///
/// Its text becomes part of errors and log lines: keep secrets out of it.
pub type CredentialsError = Box<dyn Error + Send + Sync>;

/// A future of the answer of a [`CredentialsProvider`].
pub type CredentialsFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Credentials, CredentialsError>> + Send + 'a>>;

/// Provides credentials for each new connection: for passwords and tokens that change.
///
/// It is asked whenever a connection is made; open ones stay as they are. The answer has to come
/// within the connect timeout. A failure, and credentials that the server refuses, count as an
/// outage: where it is safe, commands are tried again and the provider is asked again.
///
/// An async closure without arguments is a provider:
///
/// ```
/// # use leasehold_core::{Credentials, CredentialsProvider};
/// # fn is_provider(_: impl CredentialsProvider) {}
/// is_provider(|| async {
///     let password = std::fs::read_to_string("/run/secrets/redis")?;
///     Ok(Credentials::new("app", password.trim_end()))
/// });
/// ```
pub trait CredentialsProvider: Send + Sync + 'static {
    /// The credentials of the next connection.
    ///
    /// # Errors
    ///
    /// Any error: what needed the connection fails with a [`StoreError`](crate::StoreError) of kind
    /// `Definite` that repeats the error's text: keep secrets out of it.
    ///
    /// # Cancel safety
    ///
    /// The future is dropped when the connection takes too long.
    fn credentials(&self) -> CredentialsFuture<'_>;
}

/// A provider shows nothing of itself.
impl fmt::Debug for dyn CredentialsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialsProvider")
    }
}

impl<F, A> CredentialsProvider for F
where
    F: Fn() -> A + Send + Sync + 'static,
    A: Future<Output = Result<Credentials, CredentialsError>> + Send + 'static,
{
    fn credentials(&self) -> CredentialsFuture<'_> {
        Box::pin(self())
    }
}

/// Makes connections to one server, or to the master of one group, each set up alike.
pub(super) struct Dialer {
    pub(super) route: Route,
    pub(super) login: Login,
    /// How long a dial may take.
    pub(super) connect_timeout: Duration,
    /// Whether the server is a node of a Cluster.
    pub(super) is_node: bool,
    /// Whether each command goes behind `ASKING`.
    pub(super) is_asking: bool,
    /// Whether a connection was made before: the address is right.
    was_there: AtomicBool,
    /// The server's address without credentials.
    pub(super) endpoint: Arc<str>,
    /// Asks the Sentinels of a group where the master is; ends with the dialer.
    _watching: JoinSet<()>,
}

/// A connection that is ready for commands.
pub(super) struct Dialed {
    pub(super) connection: MultiplexedConnection,
    /// How long the server took to answer a command that costs it nothing.
    pub(super) round_trip: Duration,
    /// When it was asked whether it is a master, which it is.
    pub(super) proven_at: Instant,
    /// Which master of a group it leads to.
    pub(super) epoch: Epoch,
    /// Kept by who uses the connection; `None` where the server tells no run, or others look after that.
    pub(super) witness: Option<Arc<Witness>>,
}

impl Dialer {
    /// Without a tokio runtime to watch on, the pool asks the Sentinels now and then before a call.
    pub(super) fn new(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Option<&Handle>,
    ) -> Result<Self, StoreError> {
        config.check().map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "correct the setting")
        })?;
        let endpoint: Arc<str> = config.address.to_string().into();
        let (login, info) = Login::split_off(config);
        let info = info.set_tcp_settings(tcp_settings());
        let route = Route::new(config, info, clock);
        let route = route.map_err(|error| classify_dial(&error).from_endpoint(&*endpoint))?;
        let watching = runtime.map(|runtime| route.watch(runtime)).unwrap_or_default();
        Ok(Self {
            route,
            login,
            connect_timeout: config.connect_timeout,
            is_node: config.node.is_some(),
            is_asking: config.node.as_ref().is_some_and(|node| node.is_asking),
            was_there: AtomicBool::new(false),
            endpoint,
            _watching: watching,
        })
    }

    /// Connects, logs in, and checks that the server is a master of a supported version, by the
    /// deadline.
    ///
    /// Pushes of the server go to `heard`, and at last the end of the connection. The connection
    /// has no timeout of its own: every call on it has a deadline.
    pub(super) async fn dial(
        &self,
        clock: &dyn Clock,
        deadline: Instant,
        heard: impl AsyncPushSender,
    ) -> Result<Dialed, NotDialed> {
        let (client, epoch) = self.route.client(clock, deadline).await?;
        let client = self.login.client(&client, clock, deadline).await?;
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
            check_server(&mut connection, self.is_node).await?;
            let checking = clock.now().saturating_since(connected_at);
            let is_member = self.login.is_member(&mut connection).await;
            if !is_member.map_err(|error| NotDialed::because(&error))? {
                return Err(unknown_node().into());
            }
            let setting_up_at = clock.now();
            // Both in one round trip.
            let (one, mut asked) = (self.one_master(), connection.clone());
            let run = OptionFuture::from(one.map(|_| run_of(&mut asked)));
            let (set_up, run) = join(self.login.set_up(&mut connection), run).await;
            set_up.map_err(|error| NotDialed::because(&error))?;
            // The shorter of two: the server may have been busy during the other one.
            let round_trip = clock.now().saturating_since(setting_up_at).min(checking);
            let (witness, epoch) = match (one, run.flatten()) {
                (Some(one), Some(run)) => {
                    let (witness, epoch) =
                        one.admit(clock, deadline, run, connection.clone()).await?;
                    (Some(witness), epoch)
                }
                _ => (None, epoch),
            };
            Ok(Dialed { connection, round_trip, proven_at: connected_at, epoch, witness })
        };
        let dialed = select! {
            biased;
            dialed = within(clock, deadline, Box::pin(dialing)) => {
                dialed.unwrap_or(Err(NotDialed::in_time()))
            }
            // The old master may hang.
            () = self.route.left(epoch) => Err(NotDialed::ended()),
        };
        let was_there = self.was_there.fetch_or(dialed.is_ok(), Ordering::Relaxed);
        dialed.map_err(|failed| {
            let failed = if was_there { failed.for_now() } else { failed };
            let NotDialed { error, .. } = failed;
            NotDialed { error: self.named_in(epoch, error), ..failed }
        })
    }

    /// What looks whether the address leads to one master. Others look after that in a group or a Cluster.
    pub(super) fn one_master(&self) -> Option<&Arc<OneMaster>> {
        match &self.route {
            Route::Server(_, one) => Some(one),
            Route::Node(..) | Route::Group(_) => None,
        }
    }

    /// The same error, naming the server, unless it names one.
    pub(super) fn named(&self, error: StoreError) -> StoreError {
        let error = self.advised(error);
        if error.is_from_endpoint() { error } else { error.from_endpoint(&*self.endpoint) }
    }

    /// The same error, naming the server; of a group, the one that was the master in an epoch.
    pub(super) fn named_in(&self, epoch: Epoch, error: StoreError) -> StoreError {
        match self.route.master(epoch) {
            Some(master) => self
                .advised(error)
                .from_endpoint(format!("{master}, the master of {}", self.endpoint)),
            None => self.named(error),
        }
    }

    /// The same error; where others tell where the master is, nobody is asked to write its address.
    fn advised(&self, error: StoreError) -> StoreError {
        if !error.what().starts_with(REPLICA) && !is_readonly(error.what()) {
            return error;
        }
        match self.route {
            Route::Server(..) => error,
            Route::Node(..) => error.with_remedy(
                "the Cluster replaces the owner of the slots; it is retried where the caller waits",
            ),
            Route::Group(_) => error.with_remedy(
                "the Sentinels are about to name another master; it is retried where the caller waits",
            ),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        for credentials in [Credentials::new("app", "s3cret"), Credentials::password("s3cret")] {
            let shown = format!("{credentials:?}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}
