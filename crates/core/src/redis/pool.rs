use std::{
    future::{pending, poll_fn},
    io::{self, ErrorKind},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use deadpool_redis::{Connection, Hook, HookError, Manager, Pool, PoolError, Runtime, Timeouts};
use redis::{AsyncConnectionConfig, Client, Cmd, RedisError, Value};
use tokio::{runtime::Handle, select};

use super::{
    acknowledge::{Answered, acknowledged},
    classify::{NOT_THERE, classify, classify_dial, no_runtime, spoils_connection, unanswered},
    cluster::{Topology, slot_of},
    config::{RedisConfig, TIMEOUTS},
    epochs::{Epoch, Epochs},
    lane::{Call, evaluate, refuse_error},
    login::{ASKED_AGAIN, Dialer},
    one_master::run_of,
    route::Route,
    script::Script,
};
use crate::{
    clock::{Clock, Instant, SystemClock, within},
    mutex::Mutex,
    store::{StoreError, StoreErrorKind},
    types::{Replication, SettingError},
};

/// Pooled connections for what is not on the path of a lease: inspections and gates.
///
/// Made from a [`RedisConfig`]; with the feature `deadpool` also from a `deadpool_redis::Pool` of
/// the service. A call waits at most the command timeout for a connection. One that failed or timed
/// out is closed, and one that ended while it was idle is replaced before it is used. Connections
/// live on the tokio runtime in which the pool was made, even when another one uses them.
#[derive(Clone)]
pub struct RedisPool {
    source: Source,
    /// `None` if the pool was made outside of a tokio runtime; then a connection lives where the
    /// call was made.
    runtime: Option<Handle>,
    endpoint: Arc<str>,
    timeout: Duration,
}

#[derive(Clone)]
enum Source {
    Own(Arc<Own>),
    /// A pool for each master of a Cluster.
    Cluster(Arc<Topology<RedisPool>>),
    /// A pool of the service, which logs in as it was set up to.
    #[cfg_attr(not(feature = "deadpool"), expect(dead_code, reason = "needs that feature"))]
    Theirs(Pool),
}

/// A pool of connections to the present master: another one for each master.
struct Own {
    config: RedisConfig,
    dialer: Arc<Dialer>,
    pool: Mutex<Option<(Epoch, Pool)>>,
    /// When the last look for the master failed, and why. It is locked during a look, so that a crowd
    /// looks once.
    looking: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
}

/// For how long the error of a failed look is returned to all callers.
const FAILED_LOOK_LASTS: Duration = Duration::from_millis(50);

impl Own {
    /// The pool of the present master.
    async fn present(&self, deadline: Instant) -> Result<(Epoch, Pool), StoreError> {
        let route = &self.dialer.route;
        let known = || self.pool.lock().clone().filter(|(epoch, _)| *epoch == route.epoch());
        let watched = || known().filter(|_| !route.is_unwatched());
        if let Some(watched) = watched() {
            return Ok(watched);
        }
        let turn = within(&SystemClock, deadline, self.looking.lock()).await;
        let mut failed = turn.ok_or_else(none_in_time)?;
        if let Some(watched) = watched() {
            return Ok(watched);
        }
        let now = SystemClock.now();
        let recent =
            failed.as_ref().filter(|(at, _)| now.saturating_since(*at) < FAILED_LOOK_LASTS);
        let found = match recent {
            Some((_, error)) => Err(error.clone()),
            None => route.client(&SystemClock, deadline).await,
        };
        let (client, epoch) = match (found, known()) {
            (Ok(found), _) => found,
            // The Sentinels do not answer: what they said last stands.
            (Err(_), Some(known)) => return Ok(known),
            (Err(error), None) => {
                *failed = Some((SystemClock.now(), error.clone()));
                return Err(error);
            }
        };
        *failed = None;
        let mut present = self.pool.lock();
        if let Some(known) = &*present
            && known.0 >= epoch
        {
            return Ok(known.clone());
        }
        let pool = self.open(&client)?;
        let old = present.replace((epoch, pool.clone()));
        drop(present);
        // Outside of the lock: it closes its connections.
        drop(old);
        Ok((epoch, pool))
    }

    fn open(&self, client: &Client) -> Result<Pool, StoreError> {
        let Self { config, dialer, .. } = self;
        let refuse = |what: String| {
            StoreError::new(StoreErrorKind::Config, what, "correct the pool's settings")
                .from_endpoint(&*dialer.endpoint)
        };
        // Every call has a deadline of its own.
        let timeouts = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(config.connect_timeout))
            .set_response_timeout(None);
        let info = dialer.login.of_pool(client.get_connection_info());
        let manager =
            Manager::new_with_config(info, timeouts).map_err(|error| classify_dial(&error))?;
        let (login, limit) = (dialer.login.clone(), config.connect_timeout);
        let one = dialer.one_master().cloned();
        let setting_up = Hook::async_fn(move |connection, _| {
            let (login, one) = (login.clone(), one.clone());
            Box::pin(async move {
                // The pool sets no limit here: a set-up that hangs would keep its place for ever.
                let asked = login.ask(&SystemClock, SystemClock.now() + limit).await;
                let credentials =
                    asked.map_err(|error| HookError::message(error.what().to_owned()))?;
                let deadline = SystemClock.now() + limit;
                let setting_up = async {
                    login
                        .set_up_pooled(connection, credentials)
                        .await
                        .map_err(HookError::Backend)?;
                    let Some(one) = one else { return Ok(()) };
                    let Some(run) = run_of(connection).await else { return Ok(()) };
                    let admitted =
                        one.admit_pooled(&SystemClock, deadline, run, connection.clone()).await;
                    admitted.map_err(|error| HookError::message(error.what().to_owned()))
                };
                match within(&SystemClock, deadline, setting_up).await {
                    Some(set_up) => set_up,
                    None => Err(HookError::Backend(io::Error::from(ErrorKind::TimedOut).into())),
                }
            })
        });
        Pool::builder(manager)
            .max_size(config.pool_size)
            .timeouts(Timeouts {
                wait: Some(config.command_timeout),
                create: Some(config.connect_timeout),
                recycle: Some(config.command_timeout),
            })
            .runtime(Runtime::Tokio1)
            .post_create(setting_up)
            .build()
            .map_err(|error| refuse(error.to_string()))
    }
}

impl RedisPool {
    /// A pool that connects on first use.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` when the settings cannot work, such as an unreadable
    /// certificate.
    pub fn new(config: &RedisConfig) -> Result<Self, StoreError> {
        let runtime = Handle::try_current().ok();
        let open = |config: &RedisConfig, runtime: Option<Handle>| {
            let dialer = Dialer::new(config, Arc::new(SystemClock), runtime.as_ref())?;
            Self::on(config, Arc::new(dialer), runtime)
        };
        if config.address.cluster().is_none() {
            return open(config, runtime);
        }
        config.check().map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "correct the setting")
        })?;
        let home = runtime.clone();
        let open = Box::new(move |config: &RedisConfig, _: &[_]| open(config, home.clone()));
        Ok(Self {
            source: Source::Cluster(Topology::new(config, Arc::new(SystemClock), None, open)),
            runtime,
            endpoint: config.address.to_string().into(),
            timeout: config.command_timeout,
        })
    }

    /// How long a call may take with its wait for a connection, at least 10 ms. Default: the
    /// configuration's command timeout, or 2 s on a pool of your own.
    ///
    /// # Errors
    ///
    /// [`SettingError`] below 10 ms.
    pub fn command_timeout(self, timeout: Duration) -> Result<Self, SettingError> {
        let timeout = SettingError::check("command timeout", timeout, TIMEOUTS)?;
        Ok(Self { timeout, ..self })
    }

    /// A pool whose connections live on the given tokio runtime.
    pub(super) fn on(
        config: &RedisConfig,
        dialer: Arc<Dialer>,
        runtime: Option<Handle>,
    ) -> Result<Self, StoreError> {
        let (endpoint, timeout) = (Arc::clone(&dialer.endpoint), config.command_timeout);
        let own = Own {
            config: config.clone(),
            dialer,
            pool: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        };
        if let Route::Server(client, _) | Route::Node(client, _) = &own.dialer.route {
            *own.pool.lock() = Some((own.dialer.route.epoch(), own.open(client)?));
        }
        Ok(Self { source: Source::Own(Arc::new(own)), runtime, endpoint, timeout })
    }

    /// Calls a script with keys and arguments on a connection of its own, within the
    /// configuration's command timeout.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: `Definite` when no connection was to be had, otherwise as the failure
    /// of the call is classified.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the call back: it may or may not have run.
    #[doc(hidden)]
    pub async fn call(
        &self,
        script: &Script,
        keys: impl IntoIterator<Item = String>,
        args: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let keys: Vec<String> = keys.into_iter().collect();
        let args: Vec<Vec<u8>> = args.into_iter().collect();
        self.evaluate(script, &keys, &args, Replication::NONE).await
    }

    /// Calls a script, as [`call`](Self::call) does, and waits in the same round trip until its
    /// writes are acknowledged as `asked`. Whenever they are needed, the script has to write
    /// something: `WAIT` counts the copies of the last write of its connection.
    ///
    /// `is_needed` tells by its answer whether the script has written: a refusal needs no copies.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call). If the script has run, and fewer acknowledged it in time, an
    /// `Indeterminate` error that [is unacknowledged](StoreError::is_unacknowledged).
    ///
    /// # Cancel safety
    ///
    /// As [`call`](Self::call).
    #[doc(hidden)]
    pub async fn call_acknowledged(
        &self,
        script: &Script,
        keys: impl IntoIterator<Item = String>,
        args: impl IntoIterator<Item = Vec<u8>>,
        asked: Replication,
        is_needed: impl FnOnce(&Value) -> bool,
    ) -> Result<Value, StoreError> {
        let keys: Vec<String> = keys.into_iter().collect();
        let args: Vec<Vec<u8>> = args.into_iter().collect();
        let called = self.evaluate(script, &keys, &args, asked).await?;
        let Answered { answer, counted } = Answered::of(called, asked.are_asked());
        if is_needed(&answer) {
            // Whatever refused the wait, the script has run.
            let named = |error| self.named_in(self.epoch(), error);
            let told = |error: StoreError| {
                let error = named(error.indeterminate());
                if error.is_from_endpoint() { error } else { error.from_endpoint(&*self.endpoint) }
            };
            acknowledged(asked, counted.as_ref()).map_err(told)?;
        }
        Ok(answer)
    }

    async fn evaluate(
        &self,
        script: &Script,
        keys: &[String],
        args: &[Vec<u8>],
        acks: Replication,
    ) -> Result<Value, StoreError> {
        let write = |command: &mut Cmd| {
            command.arg(keys).arg(args);
        };
        let call = Call::new(script, keys.len(), &write).waiting_for(acks);
        let deadline = SystemClock.now() + self.timeout;
        // Boxed: the client library's futures are large, and would be part of every caller's.
        match &self.source {
            Source::Cluster(nodes) => {
                let slot = keys.first().map_or(0, |key| slot_of(key));
                let mut routed = Box::pin(routed(nodes, slot, call, deadline));
                self.at_home(routed.as_mut()).await
            }
            _ => Box::pin(self.exchange(call, &SystemClock, deadline)).await,
        }
    }

    /// Waits for a connection and the answer until the deadline; without a connection nothing has
    /// run.
    pub(super) async fn exchange(
        &self,
        call: Call<'_>,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Value, StoreError> {
        // A pooled connection does not know when it last proved that its server is a master.
        self.run(Errand::Script(call.proving()), clock, deadline).await
    }

    /// As [`exchange`](Self::exchange), with a plain command.
    pub(super) async fn send(
        &self,
        command: &Cmd,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Value, StoreError> {
        self.run(Errand::Plain(command), clock, deadline).await
    }

    /// Which master the pool leads to at present.
    pub(super) fn epoch(&self) -> Epoch {
        self.own().map_or(Epochs::FIRST, |own| own.dialer.route.epoch())
    }

    async fn run(
        &self,
        errand: Errand<'_>,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Value, StoreError> {
        let here = Handle::try_current().map(|here| here.id()).ok();
        let is_home = self.runtime.as_ref().is_none_or(|home| Some(home.id()) == here);
        let answer = pin!(async {
            let connection = within(clock, deadline, self.checkout(is_home)).await;
            let (connection, epoch) = connection.unwrap_or_else(|| Err(none_in_time()))?;
            let mut borrowed = Borrowed(Some(connection));
            let is_asking = self.own().is_some_and(|own| own.dialer.is_asking);
            let limit = deadline.saturating_since(clock.now());
            let answer = select! {
                biased;
                answer = within(clock, deadline, borrowed.run(errand, is_asking, limit)) => answer,
                // The old master may hang.
                () = self.left(epoch) => None,
            };
            let answer = answer.ok_or_else(|| self.named_in(epoch, unanswered()))?;
            if !answer.as_ref().is_err_and(spoils_connection) {
                borrowed.give_back();
            }
            answer.map_err(|error| self.named_in(epoch, classify(&error)))
        });
        self.at_home(answer).await.map_err(|error| match self.own() {
            Some(own) => own.dialer.named(error),
            None => error.from_endpoint(&*self.endpoint),
        })
    }

    /// Polls a future inside of the pool's tokio runtime: timers and the client library need one,
    /// also if the caller polls outside of any.
    async fn at_home<F: Future>(&self, mut future: Pin<&mut F>) -> F::Output {
        poll_fn(|cx| {
            let _inside = self.runtime.as_ref().map(Handle::enter);
            future.as_mut().poll(cx)
        })
        .await
    }

    /// Returns when another server is the master than in an epoch.
    async fn left(&self, epoch: Epoch) {
        match self.own() {
            Some(own) => own.dialer.route.left(epoch).await,
            None => pending().await,
        }
    }

    /// Takes a connection, which is made on the pool's runtime if there is none.
    async fn checkout(&self, is_home: bool) -> Result<(Connection, Epoch), StoreError> {
        let taken = self.take(is_home).await?;
        // A new connection may have found that the server was replaced, and its pool is given up.
        if taken.1 == self.epoch() { Ok(taken) } else { self.take(is_home).await }
    }

    async fn take(&self, is_home: bool) -> Result<(Connection, Epoch), StoreError> {
        let (pool, epoch, timeouts) = match &self.source {
            Source::Theirs(pool) => (pool.clone(), Epochs::FIRST, pool.timeouts()),
            Source::Own(own) => {
                let (epoch, pool) = own.present(SystemClock.now() + self.timeout).await?;
                let timeouts = Timeouts { wait: Some(self.timeout), ..pool.timeouts() };
                (pool, epoch, timeouts)
            }
            Source::Cluster(_) => return Err(no_node()),
        };
        let taking = async move { pool.timeout_get(&timeouts).await };
        let taken = match &self.runtime {
            // If the handle is dropped, the task goes on and returns the connection.
            Some(home) if !is_home => home.spawn(taking).await.map_err(|died| no_runtime(&died))?,
            _ => taking.await,
        };
        let taken = taken.map_err(|error| self.named_in(epoch, self.unavailable(error)))?;
        Ok((taken, epoch))
    }

    /// The same error, naming the server of an epoch if the pool knows it.
    fn named_in(&self, epoch: Epoch, error: StoreError) -> StoreError {
        match self.own() {
            Some(own) => own.dialer.named_in(epoch, error),
            None => error,
        }
    }

    fn own(&self) -> Option<&Own> {
        match &self.source {
            Source::Own(own) => Some(own),
            Source::Theirs(_) | Source::Cluster(_) => None,
        }
    }

    fn unavailable(&self, error: PoolError) -> StoreError {
        match error {
            PoolError::Backend(error) => classify_dial(&error),
            PoolError::PostCreateHook(HookError::Backend(error)) => {
                let refused = self.own().and_then(|own| own.dialer.login.refused(&error));
                refused.unwrap_or_else(|| classify_dial(&error))
            }
            PoolError::PostCreateHook(HookError::Message(what)) => {
                let one = self.own().and_then(|own| own.dialer.one_master());
                one.and_then(|one| one.refusal())
                    .unwrap_or_else(|| StoreError::new(StoreErrorKind::Definite, what, ASKED_AGAIN))
            }
            PoolError::Timeout(_) => none_in_time(),
            other => {
                let what = format!("no pooled connection: {other}");
                StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
            }
        }
    }
}

/// Calls a script on the master that owns a slot.
async fn routed(
    nodes: &Arc<Topology<RedisPool>>,
    slot: u16,
    call: Call<'_>,
    deadline: Instant,
) -> Result<Value, StoreError> {
    let mut way = nodes.way(slot, deadline);
    loop {
        let pool = way.next().await?;
        let answer = pool.exchange(call, &SystemClock, deadline).await;
        if let Some(answer) = way.settle(answer) {
            return answer;
        }
    }
}

/// What a connection is borrowed for.
#[derive(Clone, Copy)]
enum Errand<'a> {
    Script(Call<'a>),
    Plain(&'a Cmd),
}

/// A connection out of the pool, closed unless it is given back: one with an unanswered command,
/// left by a deadline or a dropped future, is not used again.
struct Borrowed(Option<Connection>);

impl Borrowed {
    async fn run(
        &mut self,
        errand: Errand<'_>,
        is_asking: bool,
        limit: Duration,
    ) -> Result<Value, RedisError> {
        match (&mut self.0, errand) {
            (Some(connection), Errand::Script(call)) => {
                evaluate(connection, call, is_asking, limit).await
            }
            (Some(connection), Errand::Plain(command)) => {
                connection.send_packed_command(command).await.and_then(refuse_error)
            }
            (None, _) => Err((redis::ErrorKind::Client, "the connection was given back").into()),
        }
    }

    fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        drop(self.0.take().map(Connection::take));
    }
}

/// A pool that the service has already: it makes, checks and limits connections as it was set up
/// to, with its own login and timeouts. A call takes at most 2 s, see
/// [`command_timeout`](RedisPool::command_timeout).
#[cfg(feature = "deadpool")]
impl From<Pool> for RedisPool {
    fn from(pool: Pool) -> Self {
        let (endpoint, timeout) = ("a pool of deadpool_redis".into(), Duration::from_secs(2));
        Self {
            source: Source::Theirs(pool),
            runtime: Handle::try_current().ok(),
            endpoint,
            timeout,
        }
    }
}

impl std::fmt::Debug for RedisPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisPool").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// On a Cluster each call goes through the pool of one node.
fn no_node() -> StoreError {
    let what = "the call is not about a key, so no node of the Cluster is the one to run it";
    StoreError::new(StoreErrorKind::Config, what, "give the script a key")
}

/// Nothing was sent: all connections were busy, or one took too long to be made or checked.
fn none_in_time() -> StoreError {
    StoreError::new(
        StoreErrorKind::Definite,
        "no pooled connection was to be had in time",
        "check that the server answers, and what keeps the connections busy; or raise the pool size",
    )
}
