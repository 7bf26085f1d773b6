use std::{
    ops::DerefMut,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use redis::{RedisError, Value, aio::MultiplexedConnection};
use tokio::{runtime::Handle, select};

use super::{
    classify::{classify, spoils_connection},
    dial::Dialer,
    script::Call,
};
use crate::{
    clock::{Clock, Instant},
    store::{StoreError, StoreErrorKind},
};

/// One multiplexed connection that is replaced when it fails or times out.
///
/// Commands of one lane are executed in the order in which they were sent, except across a
/// replacement; what a replaced connection may still deliver is harmless, because every script
/// may run twice or late.
#[derive(Debug, Clone)]
pub(super) struct Lane(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dialer: Arc<Dialer>,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    slot: Mutex<Slot>,
    dialing: Arc<tokio::sync::Mutex<()>>,
}

/// The present connection, and the failure that the last attempt to make one met.
#[derive(Debug, Default)]
struct Slot {
    connection: Option<MultiplexedConnection>,
    generation: u64,
    failed: Option<(Instant, StoreError)>,
}

/// For how long a failed dial answers for all who ask, so that a crowd dials once.
const FAILED_DIAL_STANDS: Duration = Duration::from_millis(50);

impl Lane {
    /// A lane that connects on first use, on the given tokio runtime whoever asks.
    pub(super) fn new(dialer: Arc<Dialer>, clock: Arc<dyn Clock>, runtime: Handle) -> Self {
        let (slot, dialing) = (Mutex::default(), Arc::default());
        Self(Arc::new(Inner { dialer, clock, runtime, slot, dialing }))
    }

    /// Calls a script; indeterminate if it was sent and not answered by the deadline.
    pub(super) async fn call(
        &self,
        call: Call<'_>,
        deadline: Instant,
    ) -> Result<Value, StoreError> {
        self.exchange(call, deadline)
            .await
            .map_err(|error| error.from_endpoint(self.0.dialer.endpoint().to_string()))
    }

    async fn exchange(&self, call: Call<'_>, deadline: Instant) -> Result<Value, StoreError> {
        let (mut connection, generation) = if let Some(present) = self.present() {
            present
        } else {
            // Boxed, as the other rare ways are: it would make every call's future large.
            let connecting = Box::pin(self.connect());
            self.within(deadline, connecting).await.unwrap_or_else(not_connected)?
        };
        let answer = {
            let evaluating = pin!(evaluate(&mut connection, call));
            self.within(deadline, evaluating).await
        };
        match answer {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) => {
                if spoils_connection(&error) {
                    self.replace(generation);
                }
                Err(classify(&error))
            }
            None => {
                self.replace(generation);
                Err(unanswered())
            }
        }
    }

    fn present(&self) -> Option<(MultiplexedConnection, u64)> {
        let slot = self.slot();
        slot.connection.clone().map(|connection| (connection, slot.generation))
    }

    /// Makes a connection unless somebody else just did; one attempt at a time.
    async fn connect(&self) -> Result<(MultiplexedConnection, u64), StoreError> {
        let turn = Arc::clone(&self.0.dialing).lock_owned().await;
        if let Some(present) = self.present() {
            return Ok(present);
        }
        self.recent_failure().map_or(Ok(()), Err)?;
        let lane = self.clone();
        // A task of its own: the attempt outlives a caller that gives up, and the connection
        // lives on the runtime that the lane belongs to.
        let dial = self.0.runtime.spawn(async move {
            let deadline = lane.0.clock.now() + lane.0.dialer.connect_timeout();
            let dialed = lane.within(deadline, Box::pin(lane.0.dialer.dial())).await;
            let dialed = dialed.unwrap_or_else(not_connected);
            let outcome = lane.install(dialed);
            drop(turn);
            outcome
        });
        dial.await.unwrap_or_else(|_| Err(runtime_stopped()))
    }

    fn install(
        &self,
        dialed: Result<MultiplexedConnection, StoreError>,
    ) -> Result<(MultiplexedConnection, u64), StoreError> {
        let now = self.0.clock.now();
        let mut slot = self.slot();
        match dialed {
            Ok(connection) => {
                slot.generation += 1;
                slot.connection = Some(connection.clone());
                slot.failed = None;
                Ok((connection, slot.generation))
            }
            Err(error) => {
                slot.failed = Some((now, error.clone()));
                Err(error)
            }
        }
    }

    fn recent_failure(&self) -> Option<StoreError> {
        let now = self.0.clock.now();
        let slot = self.slot();
        let (at, error) = slot.failed.as_ref()?;
        (now.saturating_since(*at) < FAILED_DIAL_STANDS).then(|| error.clone())
    }

    /// Forgets a connection, unless it was replaced already.
    fn replace(&self, generation: u64) {
        let mut slot = self.slot();
        if slot.generation == generation {
            slot.connection = None;
        }
    }

    async fn within<T>(
        &self,
        deadline: Instant,
        work: Pin<impl DerefMut<Target: Future<Output = T>>>,
    ) -> Option<T> {
        select! {
            biased;
            done = work => Some(done),
            () = self.0.clock.sleep_until(deadline) => None,
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls by digest, and with the whole text if the server does not know the digest.
pub(super) async fn evaluate(
    connection: &mut MultiplexedConnection,
    call: Call<'_>,
) -> Result<Value, RedisError> {
    if !call.with_body {
        let answer = connection.send_packed_command(&call.by_digest()).await;
        match answer.and_then(Value::extract_error) {
            Err(error) if error.code() == Some("NOSCRIPT") => {}
            answer => return answer,
        }
    }
    let answer = Box::pin(async { connection.send_packed_command(&call.by_body()).await }).await;
    answer.and_then(Value::extract_error)
}

/// Sent, perhaps executed, and not answered by the deadline.
pub(super) fn unanswered() -> StoreError {
    StoreError::new(
        StoreErrorKind::Indeterminate,
        "the server did not answer in time",
        "it is retried where that is safe; check server and network if it stays",
    )
}

pub(super) fn not_connected<T>() -> Result<T, StoreError> {
    Err(StoreError::new(
        StoreErrorKind::Definite,
        "cannot connect to Redis: no connection could be made in time",
        "check that the server runs and the address is right",
    ))
}

pub(super) fn runtime_stopped() -> StoreError {
    StoreError::new(
        StoreErrorKind::Config,
        "the tokio runtime that the lock runtime was connected on has stopped",
        "connect on a tokio runtime that lives as long as the locks, or use own_thread()",
    )
}
