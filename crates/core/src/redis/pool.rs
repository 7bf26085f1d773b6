use std::{sync::Arc, time::Duration};

use deadpool_redis::{Connection, Hook, HookError, Manager, Pool, PoolError, Runtime, Timeouts};
use redis::{ErrorKind, RedisError, Value, aio::MultiplexedConnection, make_extension_error};
use tokio::{runtime::Handle, select};

use super::{
    classify::{classify, classify_dial, spoils_connection},
    config::RedisConfig,
    dial::{Dialer, connection_config},
    lane::{evaluate, no_runtime, unanswered},
    login::{ASKED_AGAIN, Login, LoginError},
    preflight::replica_of,
    script::{Call, Script},
};
use crate::{
    clock::{Clock, Instant, SystemClock},
    store::{StoreError, StoreErrorKind},
};

/// Pooled connections for what is not on the path of a lease: inspections and gates.
///
/// Made from a [`RedisConfig`], or from a `deadpool_redis::Pool` that the service has already.
///
/// A checkout waits for at most the configuration's command timeout, and a connection that
/// failed or timed out is thrown away instead of returned. A connection that ended while it lay
/// idle is replaced before it is used.
///
/// Its connections live on the tokio runtime in which the pool was made, whoever uses them: a
/// runtime that ends does not take connections along that others still need.
#[derive(Clone)]
pub struct RedisPool {
    pool: Pool,
    /// `None` for a pool that was made outside of a tokio runtime; then a connection lives on that
    /// of the call which needed it.
    runtime: Option<Handle>,
    endpoint: Arc<str>,
    timeout: Duration,
}

impl RedisPool {
    /// A pool that connects on first use.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` when the settings cannot work, such as an unreadable
    /// certificate.
    pub fn new(config: &RedisConfig) -> Result<Self, StoreError> {
        Self::on(config, &Dialer::new(config)?, Handle::try_current().ok())
    }

    /// How long a call may take with its wait for a connection, at least 10 ms. Default: the
    /// configuration's command timeout, or 2 s on a pool of your own.
    #[must_use]
    pub fn command_timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.max(Duration::from_millis(10)), ..self }
    }

    /// A pool whose connections live on the given tokio runtime.
    pub(super) fn on(
        config: &RedisConfig,
        dialer: &Dialer,
        runtime: Option<Handle>,
    ) -> Result<Self, StoreError> {
        let refuse = |what: String| {
            StoreError::new(StoreErrorKind::Config, what, "correct the pool's settings")
                .from_endpoint(dialer.endpoint().to_string())
        };
        let timeouts = connection_config(config.connect_timeout, Some(config.command_timeout));
        let manager = Manager::new_with_config(dialer.connection_info(), timeouts)
            .map_err(|error| classify_dial(&error))?;
        let login = dialer.login().clone();
        let setting_up = Hook::async_fn(move |connection, _| {
            let login = login.clone();
            Box::pin(async move {
                login.log_in(connection).await.map_err(|error| match error {
                    LoginError::Provider(error) => HookError::message(error.what().to_owned()),
                    LoginError::Other(error) => HookError::Backend(error),
                })?;
                set_up(connection, &login).await.map_err(HookError::Backend)
            })
        });
        let pool = Pool::builder(manager)
            .max_size(config.pool_size)
            .timeouts(Timeouts {
                wait: Some(config.command_timeout),
                create: Some(config.connect_timeout),
                recycle: Some(config.command_timeout),
            })
            .runtime(Runtime::Tokio1)
            .post_create(setting_up)
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        let (endpoint, timeout) = (Arc::clone(dialer.endpoint()), config.command_timeout);
        Ok(Self { pool, runtime, endpoint, timeout })
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
    pub async fn call(
        &self,
        script: &Script,
        keys: impl IntoIterator<Item = String>,
        args: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Value, StoreError> {
        let keys: Vec<String> = keys.into_iter().collect();
        let args: Vec<Vec<u8>> = args.into_iter().collect();
        let write = |command: &mut redis::Cmd| {
            command.arg(&keys).arg(&args);
        };
        let call = Call::new(script, keys.len(), &write);
        let deadline = SystemClock.now() + self.timeout;
        // Boxed: the client library's futures are large, and would be part of every caller's.
        let answer = Box::pin(self.exchange(call, &SystemClock, deadline)).await;
        answer.map_err(|error| error.from_endpoint(self.endpoint.to_string()))
    }

    /// Waits for a connection until the deadline, and with it for the answer until the same.
    ///
    /// Only what had a connection may have run.
    pub(super) async fn exchange(
        &self,
        call: Call<'_>,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<Value, StoreError> {
        let connection = select! {
            biased;
            connection = self.checkout() => connection?,
            () = clock.sleep_until(deadline) => return Err(none_in_time()),
        };
        let mut borrowed = Borrowed(Some(connection));
        let answer = select! {
            biased;
            answer = borrowed.evaluate(call) => answer,
            () = clock.sleep_until(deadline) => return Err(unanswered()),
        };
        if !answer.as_ref().is_err_and(spoils_connection) {
            borrowed.give_back();
        }
        answer.map_err(|error| classify(&error))
    }

    /// Takes a connection, which is made on the pool's runtime if there is none.
    async fn checkout(&self) -> Result<Connection, StoreError> {
        let taken = match &self.runtime {
            Some(home) if Handle::try_current().map(|here| here.id()).ok() != Some(home.id()) => {
                let pool = self.pool.clone();
                // Dropped, the handle lets the task go on, which gives the connection back.
                let taking = home.spawn(async move { pool.get().await });
                taking.await.map_err(|died| no_runtime(&died))?
            }
            _ => self.pool.get().await,
        };
        taken.map_err(|error| unavailable(&error))
    }
}

/// Sets a new connection up, and sees that it leads to a master: a replica answers what only reads.
async fn set_up(connection: &mut MultiplexedConnection, login: &Login) -> Result<(), RedisError> {
    login.set_up(connection).await?;
    match replica_of(connection).await? {
        None => Ok(()),
        Some(master) => {
            let what = format!("the server is a replica of {master}");
            Err(make_extension_error("READONLY".into(), Some(what)))
        }
    }
}

/// A connection out of the pool: thrown away unless it is given back, so that one with a command
/// on its way, left by a deadline or a dropped future, is not used again.
struct Borrowed(Option<Connection>);

impl Borrowed {
    async fn evaluate(&mut self, call: Call<'_>) -> Result<Value, RedisError> {
        match &mut self.0 {
            Some(connection) => evaluate(connection, call).await,
            None => Err((ErrorKind::Client, "the connection was given back").into()),
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

/// A pool that the service has already: it makes, checks and limits connections as it was set up to,
/// with its own login and timeouts. A call takes at most 2 s, see
/// [`command_timeout`](RedisPool::command_timeout).
impl From<Pool> for RedisPool {
    fn from(pool: Pool) -> Self {
        let (endpoint, timeout) = ("a pool of deadpool_redis".into(), Duration::from_secs(2));
        Self { pool, runtime: Handle::try_current().ok(), endpoint, timeout }
    }
}

impl std::fmt::Debug for RedisPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisPool").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

fn unavailable(error: &PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
            classify_dial(error)
        }
        PoolError::PostCreateHook(HookError::Message(what)) => {
            StoreError::new(StoreErrorKind::Definite, what.clone(), ASKED_AGAIN)
        }
        PoolError::Timeout(_) => none_in_time(),
        other => StoreError::new(
            StoreErrorKind::Definite,
            format!("no pooled connection: {other}"),
            "check that the server runs and the address is right",
        ),
    }
}

/// Nothing was sent: all connections were busy, or one took too long to be made or checked.
fn none_in_time() -> StoreError {
    StoreError::new(
        StoreErrorKind::Definite,
        "no pooled connection was to be had in time",
        "check that the server answers, and what keeps the connections busy; or raise the pool size",
    )
}
