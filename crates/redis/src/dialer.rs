use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::{OptionFuture, join};
use leasehold_core::{Clock, Instant, Mutex, StoreError, StoreErrorKind, store::KeyScheme, within};
use redis::{
    AsyncConnectionConfig, Client, PushInfo,
    aio::{AsyncPushSender, MultiplexedConnection},
    io::tcp::{TcpSettings, socket2::TcpKeepalive},
};
use tokio::{runtime::Handle, select, task::JoinSet};

use super::{
    classify::{
        NO_REDIS, NO_SUCH_HOST, NOT_THERE, classify_dial, in_namespace, is_of_login, is_readonly,
        of_scheme,
    },
    cluster::unknown_node,
    config::{NodeSettings, RedisConfig},
    liveness::Epoch,
    login::Login,
    needed::{ended_at, not_dialed},
    not_dialed::{NOT_IN_TIME, NotDialed},
    one_master::{Witness, run_of},
    role::{NO_NODE, REPLICA, SENTINEL, check_server},
    route::Route,
    sentinel::{NAMED_MASTER, of_named_master},
    tls,
};

/// Makes connections to one server, or to the master of one group, each set up alike.
pub struct Dialer {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) route: Route,
    pub(super) login: Login,
    /// How long a dial may take.
    pub(super) connect_timeout: Duration,
    /// Set for a node of a Cluster.
    pub(super) node: Option<NodeSettings>,
    /// Where the keys are to which the user needs rights.
    keys: KeyScheme,
    /// Whether a connection was made before: the address is right.
    was_there: AtomicBool,
    /// The server's address without credentials.
    pub endpoint: Arc<str>,
    /// Asks the Sentinels of a group where the master is; ends with the dialer.
    _watching: JoinSet<()>,
}

/// A connection that is ready for commands.
pub(super) struct Dialed {
    pub(super) connection: MultiplexedConnection,
    /// How long the server took to answer a command that costs it nothing.
    pub(super) round_trip: Duration,
    /// When the question was sent to which it answered that it is a master.
    pub(super) proven_at: Instant,
    /// Which master of a group it leads to.
    pub(super) epoch: Epoch,
    /// The user of the connection keeps it; `None` if the server tells no run, or in a group or a Cluster.
    pub(super) witness: Option<Arc<Witness>>,
}

impl Dialer {
    /// Without a tokio runtime to watch on, the pool asks the Sentinels now and then before a call.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` when the settings cannot work.
    pub fn new(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Option<&Handle>,
    ) -> Result<Self, StoreError> {
        config.checked()?;
        let endpoint: Arc<str> = config.address.to_string().into();
        let (login, info) = Login::split_off(config);
        let info = info.set_tcp_settings(tcp_settings());
        let route = Route::new(config, info, &clock);
        let route = route.map_err(|error| classify_dial(&error).from_endpoint(&*endpoint))?;
        let watching = runtime.map(|runtime| route.watch(runtime)).unwrap_or_default();
        Ok(Self {
            clock,
            route,
            login,
            connect_timeout: config.connect_timeout,
            node: config.node.clone(),
            keys: config.keys.clone(),
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
        deadline: Instant,
        heard: impl AsyncPushSender,
    ) -> Result<Dialed, NotDialed> {
        let target = self.route.client(deadline).await?;
        self.dial_to(target, deadline, heard).await
    }

    /// As [`dial`](Self::dial), to the master that is known: the Sentinels are asked only if nobody else
    /// asks them.
    pub(super) async fn dial_known(&self, deadline: Instant) -> Result<Dialed, NotDialed> {
        let target = self.route.known_client(deadline).await?;
        self.dial_to(target, deadline, |_: PushInfo| Ok::<(), ()>(())).await
    }

    async fn dial_to(
        &self,
        (client, epoch): (Client, Epoch),
        deadline: Instant,
        heard: impl AsyncPushSender,
    ) -> Result<Dialed, NotDialed> {
        let clock = &*self.clock;
        let client = self.login.client(&client, clock, deadline).await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(None)
            .set_push_sender(heard);
        // The command whose answer is awaited, once there has been one.
        let asked = Mutex::new(None);
        let dialing = async {
            let mut connection = self.login.connect(&client, &config, clock, &asked).await?;
            let connected_at = clock.now();
            *asked.lock() = Some("a second HELLO");
            // First what the server is: Clusters and Sentinels refuse to select a database.
            check_server(&mut connection, self.node.is_some()).await?;
            let checking = clock.now().saturating_since(connected_at);
            if let Some(node) = &self.node {
                *asked.lock() = Some("CLUSTER SLOTS");
                let has = node.members.has(&mut connection).await;
                if !has.map_err(|error| not_dialed("CLUSTER", error))? {
                    return Err(unknown_node().into());
                }
            }
            let setting_up_at = clock.now();
            *asked.lock() = Some(self.login.sets_up_by());
            // Both in one round trip.
            let mut other = connection.clone();
            // A group or a Cluster has checks of its own.
            let one = if let Route::Server(_, one) = &self.route { Some(one) } else { None };
            let run = OptionFuture::from(one.map(|_| run_of(&mut other)));
            let set_up = async {
                let set_up = self.login.set_up(&mut connection).await;
                if !matches!(set_up, Ok(false)) {
                    *asked.lock() = Some("INFO");
                }
                set_up
            };
            let (set_up, run) = join(set_up, run).await;
            // Both were under way.
            if let (Err(one), Some(Err(_))) = (&set_up, &run)
                && one.was_cut
            {
                return Err(ended_at(&format!("{} or INFO", self.login.sets_up_by())));
            }
            set_up?;
            *asked.lock() = None;
            // The shorter of two round trips: the server may have been busy during the other one.
            let round_trip = clock.now().saturating_since(setting_up_at).min(checking);
            let (witness, epoch) = match (one, run.transpose()?.flatten()) {
                (Some(one), Some(run)) => {
                    let (witness, epoch) = one.admit(deadline, run, connection.clone()).await?;
                    (Some(witness), epoch)
                }
                _ => (None, epoch),
            };
            Ok(Dialed { connection, round_trip, proven_at: connected_at, epoch, witness })
        };
        let dialed = select! {
            biased;
            dialed = within(clock, deadline, Box::pin(dialing)) => {
                dialed.unwrap_or_else(|| Err(NotDialed::in_time_at(*asked.lock())))
            }
            // The old master may hang.
            () = self.route.epochs().left(epoch) => Err(NotDialed::ended()),
        };
        let was_there = self.was_there.fetch_or(dialed.is_ok(), Ordering::Relaxed);
        dialed.map_err(|failed| {
            let failed = failed.for_now_if(was_there);
            let error = self.named_in(epoch, failed.error.by(deadline, clock.now()));
            let is_named = matches!(self.route, Route::Group(_));
            let error = if is_named { of_named_master(error) } else { error };
            // What is foreign where a node was has been reached.
            let was_node = failed.is_foreign && was_there;
            let failed = NotDialed { error, ..failed };
            if was_node { failed } else { self.announced(failed) }
        })
    }

    /// The same error of a connection that could not be made. Of a node whose address nobody wrote, it says where
    /// the address comes from, and what corrects it.
    pub(super) fn announced(&self, failed: NotDialed) -> NotDialed {
        let Some(node) = self.node.as_ref().filter(|_| !failed.error.is_ours()) else {
            return failed;
        };
        let is_login = is_of_login(&failed.error);
        let may_be_other = is_login || failed.was_cut || failed.is_of_setup;
        // Another node has let this process in, and named this one.
        let error = if is_login { failed.error.with_remedy(NO_USER) } else { failed.error };
        let Some(teller) = &node.announced_to else { return NotDialed { error, ..failed } };
        let is_out_of_reach = error.kind() == StoreErrorKind::Definite
            && !error.is_answer()
            && [NOT_THERE, NOT_IN_TIME, NO_SUCH_HOST].contains(&error.remedy());
        let is_other = error.kind() == StoreErrorKind::Config && is_foreign(&error);
        let remedy = match (is_out_of_reach, is_other, error.remedy()) {
            (true, ..) => {
                "check that the node runs; if it cannot be reached at this address from here, correct its \
                 `cluster-announce-ip` and `cluster-announce-port`, or `cluster-announce-hostname` and \
                 `cluster-preferred-endpoint-type hostname`"
                    .into()
            }
            (_, true, _) => LEAD_TO_NODE.into(),
            (.., theirs) if may_be_other => {
                format!("{theirs}; or, if it is not the node, {LEAD_TO_NODE}")
            }
            (.., theirs) => theirs.to_owned(),
        };
        let at = format!("{}, which the Cluster announces, as {teller} says", self.endpoint);
        NotDialed { error: error.from_endpoint(at).with_remedy(remedy), ..failed }
    }

    /// Whether `ASKING` is sent before each command.
    pub(super) fn is_asking(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_asking)
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
                .from_endpoint(format!("{master}, {} of {}", NAMED_MASTER, self.endpoint)),
            None => self.named(error),
        }
    }

    /// The same error; where others tell where the master is, nobody is asked to write its address.
    fn advised(&self, error: StoreError) -> StoreError {
        let error = of_scheme(self.endpoint.starts_with("rediss"), error);
        let error = in_namespace(&self.keys, error);
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

const NO_USER: &str = "create the user there, or set its password or none (ACL SETUSER, requirepass), as on the nodes that let \
     this process in";
const LEAD_TO_NODE: &str = "let the address lead to the node: correct its `cluster-announce-ip`, `cluster-announce-port` \
     (with TLS `cluster-announce-tls-port`) or `cluster-announce-hostname`";

/// Whether what answers is no node of a Cluster.
fn is_foreign(error: &StoreError) -> bool {
    [NO_NODE, NO_REDIS, SENTINEL].contains(&error.what()) || tls::is_foreign(error)
}

/// Makes one connection as those of locks are made: to a master, logged in. With it comes the run of the
/// server, if it tells one.
///
/// # Errors
///
/// [`StoreError`] when no connection can be made in the connect timeout.
///
/// # Cancel safety
///
/// Dropping the future closes the connection.
pub async fn dial_once(
    config: &RedisConfig,
    clock: &Arc<dyn Clock>,
) -> Result<(MultiplexedConnection, Option<String>), StoreError> {
    // Nobody watches the Sentinels: this address is a server's.
    let dialer = Dialer::new(config, Arc::clone(clock), None)?;
    let deadline = clock.now() + config.connect_timeout;
    let connecting = dialer.dial(deadline, |_: PushInfo| Ok::<(), ()>(())).await;
    let Dialed { connection, witness, .. } = connecting.map_err(|failed| failed.error)?;
    Ok((connection, witness.map(|witness| witness.run.clone())))
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

#[cfg(test)]
mod tests {
    use std::io;

    use leasehold_core::SystemClock;
    use redis::RedisError;

    use super::*;

    #[test]
    fn what_is_known_of_an_announced_address_is_not_replaced() {
        let node = NodeSettings { announced_to: Some("other:1".into()), ..NodeSettings::default() };
        let config = RedisConfig::new("redis://h:1").unwrap();
        let config = RedisConfig { node: Some(node), ..config };
        let dialer = Dialer::new(&config, Arc::new(SystemClock), None).unwrap();
        let told = |failed: NotDialed| {
            let error = dialer.named(failed.error.clone());
            dialer.announced(NotDialed { error, ..failed }).error.to_string()
        };
        let out_of_reach = told(NotDialed::in_time());
        assert!(out_of_reach.contains("as other:1 says"), "{out_of_reach}");
        assert!(out_of_reach.contains("cluster-announce-ip"), "{out_of_reach}");
        let lost =
            io::Error::other("failed to lookup address information: Name or service not known");
        let unknown = told(NotDialed::from(RedisError::from(lost)));
        assert!(unknown.contains("cluster-announce-hostname"), "{unknown}");
        let ended = told(NotDialed::ended());
        let both = ["maxclients", "or, if it is not the node, let the address lead"];
        assert!(both.iter().all(|says| ended.contains(says)), "{ended}");
        let loading = StoreError::new(StoreErrorKind::Definite, "LOADING", "wait").as_answer();
        let loading = told(loading.into());
        assert!(loading.ends_with("as other:1 says); wait"), "{loading}");
    }
}
