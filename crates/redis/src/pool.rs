use std::{
    future::{pending, poll_fn},
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use leasehold_core::{
    Clock, Instant, Replication, SettingError, StoreError, StoreErrorKind, SystemClock, within,
};
use pool::managed::{Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult};
use redis::{Cmd, RedisError, Value, aio::MultiplexedConnection};
use tokio::{runtime::Handle, select};

use super::{
    acknowledge::{Answered, acknowledged},
    call::ScriptCall,
    classify::{NOT_THERE, classify, no_runtime, spoils_connection, unanswered},
    cluster::{ClusterTopology, slot_of},
    config::{RedisConfig, TIMEOUTS},
    dialer::{Dialed, Dialer},
    epochs::{Epoch, Epochs},
    script::Script,
    sending::{evaluate, refuse_error},
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
    Own(Pool<Dials>),
    /// A pool for each master of a Cluster.
    Cluster(Arc<ClusterTopology<RedisPool>>),
    /// A pool of the service, which logs in as it was set up to.
    #[cfg(feature = "deadpool")]
    Theirs(deadpool_redis::Pool),
}

/// Makes the connections of a pool as all others are made.
// ADR 0048
struct Dials {
    dialer: Arc<Dialer>,
    /// How long the check of a connection may take.
    patience: Duration,
}

impl Manager for Dials {
    type Type = Dialed;
    type Error = StoreError;

    async fn create(&self) -> Result<Dialed, StoreError> {
        let deadline = SystemClock.now() + self.dialer.connect_timeout;
        let dialed = match self.dialer.dial_known(&SystemClock, deadline).await {
            // Another server was found to be the master meanwhile.
            Err(not_dialed) if not_dialed.was_cut => {
                self.dialer.dial_known(&SystemClock, deadline).await
            }
            dialed => dialed,
        };
        dialed.map_err(|not_dialed| not_dialed.error)
    }

    /// A connection that has ended, or that leads to another server than the present master, is replaced.
    async fn recycle(&self, dialed: &mut Dialed, _: &Metrics) -> RecycleResult<StoreError> {
        let (route, until) = (&self.dialer.route, SystemClock.now() + self.patience);
        if route.is_unwatched() {
            // If the Sentinels do not answer, what they said last stands; the question has time left.
            let asked_until = SystemClock.now() + self.patience / 2;
            let _ = route.client(&SystemClock, asked_until).await;
        }
        let ping = redis::cmd("PING");
        let asked = ping.query_async::<String>(&mut dialed.connection);
        let answer = select! {
            biased;
            // Also while it is checked: the old master may hang.
            () = route.left(dialed.epoch) => None,
            answer = within(&SystemClock, until, asked) => answer,
        };
        match answer {
            Some(Ok(answer)) if answer == "PONG" => Ok(()),
            _ => Err(RecycleError::message("no answer, or another server is the master")),
        }
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
        config.checked()?;
        let home = runtime.clone();
        let open = Box::new(move |config: &RedisConfig, _: &[_]| open(config, home.clone()));
        Ok(Self {
            source: Source::Cluster(ClusterTopology::new(
                config,
                Arc::new(SystemClock),
                None,
                open,
            )),
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
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` when the settings cannot work.
    #[doc(hidden)]
    pub fn on(
        config: &RedisConfig,
        dialer: Arc<Dialer>,
        runtime: Option<Handle>,
    ) -> Result<Self, StoreError> {
        let (endpoint, timeout) = (Arc::clone(&dialer.endpoint), config.command_timeout);
        let dials = Dials { dialer, patience: timeout };
        // Every call has a deadline of its own, so the pool needs no timers.
        let pool = Pool::builder(dials).max_size(config.pool_size).build().map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "report this as a bug")
        })?;
        Ok(Self { source: Source::Own(pool), runtime, endpoint, timeout })
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
        self.call_acknowledged(script, keys, args, Replication::NONE, |_| false).await
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
        let Answered { answer, counted } = self.evaluate(script, &keys, &args, asked).await?;
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
    ) -> Result<Answered, StoreError> {
        let write = |command: &mut Cmd| {
            command.arg(keys).arg(args);
        };
        let call = ScriptCall::new(script, keys.len(), &write).waiting_for(acks);
        let deadline = SystemClock.now() + self.timeout;
        // Boxed: the client library's futures are large, and would be part of every caller's.
        if let Source::Cluster(nodes) = &self.source {
            let slot = keys.first().map_or(0, |key| slot_of(key));
            let mut routed = Box::pin(routed(nodes, slot, call, deadline));
            return self.at_home(routed.as_mut()).await;
        }
        Box::pin(self.exchange(call, &SystemClock, deadline)).await
    }

    /// Waits for a connection and the answer until the deadline; without a connection nothing has
    /// run.
    pub(super) async fn exchange(
        &self,
        call: ScriptCall<'_>,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Answered, StoreError> {
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
        Ok(self.run(Errand::Plain(command), clock, deadline).await?.answer)
    }

    /// Which master the pool leads to at present.
    pub(super) fn epoch(&self) -> Epoch {
        self.dialer().map_or(Epochs::FIRST, |dialer| dialer.route.epoch())
    }

    async fn run(
        &self,
        errand: Errand<'_>,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Answered, StoreError> {
        let here = Handle::try_current().map(|here| here.id()).ok();
        let is_home = self.runtime.as_ref().is_none_or(|home| Some(home.id()) == here);
        let answer = pin!(async {
            // Boxed, as it is large: otherwise it would be a part of every inspection.
            let taken = within(clock, deadline, Box::pin(self.take(is_home))).await;
            let mut borrowed = taken.unwrap_or_else(|| Err(none_in_time()))?;
            let epoch = borrowed.epoch;
            let is_asking = self.dialer().is_some_and(|dialer| dialer.is_asking);
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
        self.at_home(answer).await.map_err(|error| match self.dialer() {
            Some(dialer) => dialer.named(error),
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

    /// Takes a connection, which is made on the pool's runtime if there is none.
    async fn take(&self, is_home: bool) -> Result<Borrowed, StoreError> {
        match &self.source {
            Source::Own(pool) => {
                let taken = self.take_own(pool, is_home).await?;
                if taken.epoch == self.epoch() {
                    return Ok(Borrowed::of_own(taken));
                }
                // While it was taken, another server was found to be the master.
                drop(Object::take(taken));
                Ok(Borrowed::of_own(self.take_own(pool, is_home).await?))
            }
            #[cfg(feature = "deadpool")]
            Source::Theirs(pool) => {
                let pool = pool.clone();
                let taking = async move { pool.get().await };
                match self.taken(is_home, taking).await? {
                    Ok(taken) => Ok(Borrowed::of_theirs(taken)),
                    Err(PoolError::Backend(error)) => Err(super::classify::classify_dial(&error)),
                    Err(PoolError::Timeout(_)) => Err(none_in_time()),
                    Err(other) => Err(unavailable(&other)),
                }
            }
            Source::Cluster(_) => Err(no_node()),
        }
    }

    async fn take_own(
        &self,
        pool: &Pool<Dials>,
        is_home: bool,
    ) -> Result<Object<Dials>, StoreError> {
        let (pool, until) = (pool.clone(), SystemClock.now() + self.timeout);
        let taking = Box::pin(async move { within(&SystemClock, until, pool.get()).await });
        match self.taken(is_home, taking).await?.ok_or_else(none_in_time)? {
            Ok(taken) => Ok(taken),
            Err(PoolError::Backend(error)) => Err(error),
            Err(other) => Err(unavailable(&other)),
        }
    }

    /// Takes a connection on the pool's tokio runtime. Elsewhere it is a task that goes on when the
    /// handle is dropped, and gives the connection back.
    async fn taken<T: Send + 'static>(
        &self,
        is_home: bool,
        taking: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.runtime {
            Some(home) if !is_home => home.spawn(taking).await.map_err(|died| no_runtime(&died)),
            _ => Ok(taking.await),
        }
    }

    /// Returns when another server is the master than in an epoch.
    async fn left(&self, epoch: Epoch) {
        match self.dialer() {
            Some(dialer) => dialer.route.left(epoch).await,
            None => pending().await,
        }
    }

    /// The same error, naming the server of an epoch if the pool knows it.
    fn named_in(&self, epoch: Epoch, error: StoreError) -> StoreError {
        match self.dialer() {
            Some(dialer) => dialer.named_in(epoch, error),
            None => error,
        }
    }

    fn dialer(&self) -> Option<&Dialer> {
        let Source::Own(pool) = &self.source else { return None };
        Some(&pool.manager().dialer)
    }
}

/// Calls a script on the master that owns a slot.
async fn routed(
    nodes: &Arc<ClusterTopology<RedisPool>>,
    slot: u16,
    call: ScriptCall<'_>,
    deadline: Instant,
) -> Result<Answered, StoreError> {
    let mut attempts = nodes.attempts(slot, deadline);
    loop {
        let pool = attempts.next().await?;
        let answer = pool.exchange(call, &SystemClock, deadline).await;
        if let Some(answer) = attempts.settle(answer) {
            return answer;
        }
    }
}

/// What a connection is borrowed for.
#[derive(Clone, Copy)]
enum Errand<'a> {
    Script(ScriptCall<'a>),
    Plain(&'a Cmd),
}

/// A connection out of the pool, closed unless it is given back: one with an unanswered command,
/// left by a deadline or a dropped future, is not used again.
struct Borrowed {
    connection: MultiplexedConnection,
    /// Which master of a group it leads to.
    epoch: Epoch,
    /// What gives its place in the pool back.
    lent: Option<Lent>,
}

enum Lent {
    Own(Object<Dials>),
    #[cfg(feature = "deadpool")]
    Theirs(deadpool_redis::Connection),
}

impl Borrowed {
    fn of_own(taken: Object<Dials>) -> Self {
        let (connection, epoch) = (taken.connection.clone(), taken.epoch);
        Self { connection, epoch, lent: Some(Lent::Own(taken)) }
    }

    #[cfg(feature = "deadpool")]
    fn of_theirs(taken: deadpool_redis::Connection) -> Self {
        let connection = MultiplexedConnection::clone(&taken);
        Self { connection, epoch: Epochs::FIRST, lent: Some(Lent::Theirs(taken)) }
    }

    async fn run(
        &mut self,
        errand: Errand<'_>,
        is_asking: bool,
        limit: Duration,
    ) -> Result<Answered, RedisError> {
        match errand {
            Errand::Script(call) => evaluate(&mut self.connection, call, is_asking, limit).await,
            Errand::Plain(command) => {
                let answer = self.connection.send_packed_command(command).await?;
                Ok(Answered { answer: refuse_error(answer)?, counted: None })
            }
        }
    }

    fn give_back(mut self) {
        drop(self.lent.take());
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        match self.lent.take() {
            Some(Lent::Own(taken)) => drop(Object::take(taken)),
            #[cfg(feature = "deadpool")]
            Some(Lent::Theirs(taken)) => drop(deadpool_redis::Connection::take(taken)),
            None => {}
        }
    }
}

/// A pool that the service has already: it makes, checks and limits connections as it was set up
/// to, with its own login and timeouts. A call takes at most 2 s, see
/// [`command_timeout`](RedisPool::command_timeout).
#[cfg(feature = "deadpool")]
impl From<deadpool_redis::Pool> for RedisPool {
    fn from(pool: deadpool_redis::Pool) -> Self {
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

fn unavailable<E: std::fmt::Display>(error: &PoolError<E>) -> StoreError {
    let what = format!("no pooled connection: {error}");
    StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
}

/// Nothing was sent: all connections were busy, or one took too long to be made or checked.
fn none_in_time() -> StoreError {
    StoreError::new(
        StoreErrorKind::Definite,
        "no pooled connection was to be had in time",
        "check that the server answers, and what keeps the connections busy; or raise the pool size",
    )
}
