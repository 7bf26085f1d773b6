use std::{
    convert::identity,
    fmt,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt};
use leasehold_core::{
    Clock, Instant, Replication, STOOD_STILL, SettingError, StoreError, StoreErrorKind,
    SystemClock, within,
};
use pool::managed::{Manager, Metrics, Object, Pool, PoolError, RecycleError, RecycleResult};
use redis::{Cmd, RedisError, Value, aio::MultiplexedConnection};
use tokio::{runtime::Handle, select, task::JoinSet};

use super::{
    acknowledge::{Answered, acknowledged},
    classify::{NOT_THERE, classify, no_runtime, not_in_time, spoils_connection, unanswered},
    cluster::{ClusterTopology, slot_of},
    config::{RedisConfig, TIMEOUTS},
    dialer::{Dialed, Dialer},
    liveness::{Epoch, Epochs},
    script::{Script, ScriptCall, evaluate, send},
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
    clock: Arc<dyn Clock>,
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
        let deadline = self.dialer.clock.now() + self.dialer.connect_timeout;
        let dialer = Arc::clone(&self.dialer);
        // A task, because to connect panics where there is no IO.
        let mut making = JoinSet::new();
        making.spawn(async move {
            let mut made = dialer.dial_known(deadline).await;
            if made.as_ref().is_err_and(|not_dialed| not_dialed.was_cut) {
                // Another server was found to be the master meanwhile.
                made = dialer.dial_known(deadline).await;
            }
            made.map_err(|not_dialed| not_dialed.error)
        });
        match making.join_next().await {
            Some(made) => made.unwrap_or_else(|died| Err(no_runtime(&died))),
            None => not_in_time(),
        }
    }

    /// A connection that has ended, or that leads to another server than the present master, is replaced.
    async fn recycle(&self, dialed: &mut Dialed, _: &Metrics) -> RecycleResult<StoreError> {
        let Dialer { route, clock, .. } = &*self.dialer;
        let asked_at = clock.now();
        if route.is_unwatched() {
            // If the Sentinels do not answer, what they said last stands; the question has time left.
            let _ = route.client(asked_at + self.patience / 2).await;
        }
        let ping = redis::cmd("PING");
        let asked = ping.query_async::<String>(&mut dialed.connection);
        let answer = select! {
            biased;
            // Also while it is checked: the old master may hang.
            () = route.epochs().left(dialed.epoch) => None,
            answer = within(&**clock, asked_at + self.patience, asked) => answer,
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
        let (runtime, clock) = (Handle::try_current().ok(), Arc::new(SystemClock));
        let home = runtime.clone();
        let open = move |config: &RedisConfig, _: &[_]| {
            let dialer = Dialer::new(config, Arc::new(SystemClock), home.as_ref())?;
            Self::on(config, Arc::new(dialer), home.clone())
        };
        if config.address.cluster().is_none() {
            return open(config, &[]);
        }
        config.checked()?;
        let nodes = ClusterTopology::new(config, clock.clone(), None, Box::new(open));
        Ok(Self {
            source: Source::Cluster(nodes),
            runtime,
            clock,
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
        let (clock, endpoint) = (Arc::clone(&dialer.clock), Arc::clone(&dialer.endpoint));
        let timeout = config.command_timeout;
        let dials = Dials { dialer, patience: timeout };
        // Every call has a deadline of its own, so the pool needs no timers.
        let pool = Pool::builder(dials).max_size(config.pool_size).build().map_err(|error| {
            StoreError::new(StoreErrorKind::Config, error.to_string(), "report this as a bug")
        })?;
        Ok(Self { source: Source::Own(pool), runtime, clock, endpoint, timeout })
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
        let (slot, count) = (keys.first().map_or(0, |key| slot_of(key)), keys.len());
        let write = move |to: &mut Cmd| {
            to.arg(&keys).arg(&args);
        };
        let errand = Errand::script(script, count, write, asked);
        let deadline = self.clock.now() + self.timeout;
        let Answered { answer, counted } = if let Source::Cluster(nodes) = &self.source {
            let nodes = Arc::clone(nodes);
            let routed = async move { routed(&nodes, slot, &errand, deadline).await };
            self.at_home(deadline, routed.boxed()).await?
        } else {
            self.run(errand, deadline).await?
        };
        if is_needed(&answer) {
            // Whatever refused the wait, the script has run.
            acknowledged(asked, counted.as_ref())
                .map_err(|error| self.named(self.named_in(self.epoch(), error.indeterminate())))?;
        }
        Ok(answer)
    }

    /// Waits for a connection and the answer until the deadline; without a connection nothing has
    /// run.
    pub(super) async fn run(
        &self,
        errand: Errand,
        deadline: Instant,
    ) -> Result<Answered, StoreError> {
        let pool = self.clone();
        let running = async move { pool.run_here(&errand, deadline).await };
        self.at_home(deadline, running.boxed()).await
    }

    /// Which master the pool leads to at present.
    pub(super) fn epoch(&self) -> Epoch {
        self.dialer().map_or(Epochs::FIRST, |dialer| dialer.route.epochs().now())
    }

    /// Does work on the pool's tokio runtime: timers and connections need one. Elsewhere it is a task,
    /// which goes on when the handle is dropped. Boxed: the client library's futures are large and deep,
    /// and would be part of every caller's. It ends by its deadline, unless nothing drives that runtime.
    async fn at_home(
        &self,
        deadline: Instant,
        work: BoxFuture<'static, Result<Answered, StoreError>>,
    ) -> Result<Answered, StoreError> {
        let here = Handle::try_current().map(|here| here.id()).ok();
        match &self.runtime {
            None if here.is_none() => Err(self.named(outside_of_tokio())),
            Some(home) if Some(home.id()) != here => {
                let has_begun = Arc::<AtomicBool>::default();
                let begins = Arc::clone(&has_begun);
                let working = home.spawn(async move {
                    begins.store(true, Ordering::Relaxed);
                    work.await
                });
                let latest = deadline + STOOD_STILL;
                let Some(worked) = within(&*self.clock, latest, working).await else {
                    let error = if has_begun.load(Ordering::Relaxed) {
                        unanswered()
                    } else {
                        none_in_time()
                    };
                    return Err(self.named(error.undriven()));
                };
                worked.unwrap_or_else(|died| {
                    let error = self.named(no_runtime(&died));
                    // The script may have been sent before the tokio runtime stopped.
                    let may_have_run = died.is_cancelled() && has_begun.load(Ordering::Relaxed);
                    Err(if may_have_run { error.indeterminate() } else { error })
                })
            }
            _ => work.await,
        }
    }

    async fn run_here(&self, errand: &Errand, deadline: Instant) -> Result<Answered, StoreError> {
        let (clock, dialer) = (&*self.clock, self.dialer());
        let answer = async {
            let until = deadline.min(clock.now() + self.timeout);
            let taken = within(clock, until, self.take()).await;
            let mut borrowed = taken.unwrap_or_else(|| Err(none_in_time()))?;
            let epoch = borrowed.epoch;
            let is_asking = dialer.is_some_and(Dialer::is_asking);
            let limit = deadline.saturating_since(clock.now());
            let left = async {
                match dialer {
                    Some(dialer) => dialer.route.epochs().left(epoch).await,
                    None => pending().await,
                }
            };
            let answer = select! {
                biased;
                answer = within(clock, deadline, borrowed.run(errand, is_asking, limit)) => answer,
                // The old master may hang.
                () = left => None,
            };
            let answer = answer.ok_or_else(|| self.named_in(epoch, unanswered()))?;
            if !answer.as_ref().is_err_and(spoils_connection) {
                borrowed.give_back();
            }
            answer.map_err(|error| self.named_in(epoch, classify(&error)))
        };
        answer.await.map_err(|error| self.named(error))
    }

    /// Takes a connection, or makes one.
    async fn take(&self) -> Result<Borrowed, StoreError> {
        match &self.source {
            Source::Own(pool) => {
                let take = async || pool.get().await.map_err(|error| not_taken(error, identity));
                let mut taken = take().await?;
                if taken.epoch != self.epoch() {
                    // While it was taken, another server was found to be the master.
                    drop(Object::take(taken));
                    taken = take().await?;
                }
                let (connection, epoch) = (taken.connection.clone(), taken.epoch);
                Ok(Borrowed { connection, epoch, lent: Some(Lent::Own(taken)) })
            }
            #[cfg(feature = "deadpool")]
            Source::Theirs(pool) => {
                let dial = |error| super::classify::classify_dial(&error);
                let taken = pool.get().await.map_err(|error| not_taken(error, dial))?;
                let connection = MultiplexedConnection::clone(&taken);
                Ok(Borrowed { connection, epoch: Epochs::FIRST, lent: Some(Lent::Theirs(taken)) })
            }
            // Its calls go through the pools of the nodes.
            Source::Cluster(_) => Err(none_in_time()),
        }
    }

    /// The same error, naming the server, unless it names one.
    fn named(&self, error: StoreError) -> StoreError {
        match self.dialer() {
            Some(dialer) => dialer.named(error),
            None if error.is_from_endpoint() => error,
            None => error.from_endpoint(&*self.endpoint),
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
    errand: &Errand,
    deadline: Instant,
) -> Result<Answered, StoreError> {
    let mut attempts = nodes.attempts(slot, deadline);
    loop {
        let pool = attempts.next().await?;
        let answer = pool.run_here(errand, deadline).await;
        if let Some(answer) = attempts.settle(answer) {
            return answer;
        }
    }
}

/// What a connection is borrowed for. It owns what it needs: it may travel to the pool's tokio runtime.
pub(super) enum Errand {
    Script {
        script: Script,
        keys: usize,
        write: Box<dyn Fn(&mut Cmd) + Send + Sync>,
        acks: Replication,
    },
    Plain(Cmd),
}

impl Errand {
    /// The call of a script; `write` writes its keys and arguments.
    pub(super) fn script(
        script: &Script,
        keys: usize,
        write: impl Fn(&mut Cmd) + Send + Sync + 'static,
        acks: Replication,
    ) -> Self {
        Self::Script { script: script.clone(), keys, write: Box::new(write), acks }
    }
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
    async fn run(
        &mut self,
        errand: &Errand,
        is_asking: bool,
        limit: Duration,
    ) -> Result<Answered, RedisError> {
        match errand {
            Errand::Script { script, keys, write, acks } => {
                // A pooled connection does not know when it last proved that its server is a master.
                let call = ScriptCall::new(script, *keys, write).proving().waiting_for(*acks);
                evaluate(&mut self.connection, call, is_asking, limit).await
            }
            Errand::Plain(command) => {
                send(&mut self.connection, command.clone(), false, Replication::NONE, limit).await
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
        Self {
            source: Source::Theirs(pool),
            runtime: Handle::try_current().ok(),
            clock: Arc::new(SystemClock),
            endpoint: "a pool of deadpool_redis".into(),
            timeout: Duration::from_secs(2),
        }
    }
}

impl fmt::Debug for RedisPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisPool").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// The error of a pool that gave no connection; `failed` says what it means that none could be made.
fn not_taken<E: fmt::Display>(
    error: PoolError<E>,
    failed: impl FnOnce(E) -> StoreError,
) -> StoreError {
    match error {
        PoolError::Backend(error) => failed(error),
        PoolError::Timeout(_) => none_in_time(),
        other => {
            let what = format!("no pooled connection: {other}");
            StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
        }
    }
}

/// Nothing was sent: there is nothing to connect on.
fn outside_of_tokio() -> StoreError {
    StoreError::new(
        StoreErrorKind::Config,
        "there is no tokio runtime here, and the pool was made outside of one",
        "make the pool inside of a tokio runtime that lives as long as it is used",
    )
}

/// Nothing was sent: all connections were busy, or one took too long to be made or checked.
fn none_in_time() -> StoreError {
    StoreError::new(
        StoreErrorKind::Definite,
        "no pooled connection was to be had in time",
        "check that the server answers, and what keeps the connections busy; or raise the pool size",
    )
}
