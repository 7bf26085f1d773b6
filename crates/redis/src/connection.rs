use std::{io, pin::pin, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use leasehold_core::{Clock, Instant, Mutex, StoreError, StoreErrorKind, within};
use redis::{PushInfo, PushKind, RedisError, Value, aio::MultiplexedConnection};
use tokio::{runtime::Handle, select};

use super::{
    acknowledge::Answered,
    classify::{
        NOT_THERE, classify, classify_words, is_readonly, no_runtime, not_in_time,
        spoils_connection, unanswered,
    },
    decode::refusal,
    dialer::{Dialed, Dialer},
    liveness::{Epoch, Liveness},
    not_dialed::NotDialed,
    one_master::Witness,
    script::{ScriptCall, send},
};
use crate::durations::FAILURE_LASTS;

/// One multiplexed connection, which is replaced when it ends, fails or no longer answers.
///
/// The end of a connection is noticed at once, so that the next call dials anew. A call without an
/// answer at its deadline costs the connection only if nothing else is read on it, see `liveness.rs`.
///
/// Commands are executed in the order in which they were sent, except across a replacement, or when
/// the server does not know the script. What a replaced connection may still deliver is harmless,
/// because every script may run twice or late.
///
/// Messages do not come here: see `subscriber.rs`.
#[derive(Clone)]
pub struct Connection(Arc<ConnectionInner>);

struct ConnectionInner {
    dialer: Arc<Dialer>,
    runtime: Handle,
    current: Mutex<Current>,
    dialing: Arc<tokio::sync::Mutex<()>>,
    /// What a new connection is used for first.
    greeting: Option<Arc<dyn Greeting>>,
}

/// The first use of each connection of this kind, before any command.
pub trait Greeting: Send + Sync {
    /// Uses a new connection; if it fails, the connection is given up.
    fn greet(&self, connection: MultiplexedConnection) -> Greeted<'_>;
}

/// What a greeting returns.
pub type Greeted<'a> = BoxFuture<'a, Result<(), StoreError>>;

/// The present connection, and the failure that the last attempt to make one met.
#[derive(Default)]
struct Current {
    connection: Option<Present>,
    /// The number of the last attempt to make a connection.
    generation: u64,
    /// The number of the last attempt that was given up.
    ended: u64,
    /// When the last attempt failed, and why.
    failed: Option<(Instant, StoreError)>,
}

/// A connection in use.
#[derive(Clone)]
pub(super) struct Present {
    connection: MultiplexedConnection,
    generation: u64,
    /// Which master of a group it leads to.
    epoch: Epoch,
    liveness: Arc<Liveness>,
    /// Only kept: it shows that the connection is in use.
    _witness: Option<Arc<Witness>>,
}

/// A command that was sent and is not answered yet.
type LateAnswer = BoxFuture<'static, Result<Answered, RedisError>>;

/// An exchange that brought no answer, or an error.
pub(super) struct ExchangeFailed {
    pub(super) error: StoreError,
    /// The same call may be answered on another connection.
    pub(super) connection_ended: bool,
}

/// An error while the connection stood, or before there was one: such a call is not repeated.
impl From<StoreError> for ExchangeFailed {
    fn from(error: StoreError) -> Self {
        Self { error, connection_ended: false }
    }
}

/// How many times its patience a `PING` may take while other answers are read.
const PING_PATIENCES: u32 = 3;

impl Connection {
    /// A connection that is made on first use, always on the given tokio runtime.
    ///
    /// Once one with a greeting has ended, or could not be made, no command waits for the next: it fails
    /// at once, and the next is made in the background.
    pub fn new(dialer: Arc<Dialer>, runtime: Handle, greeting: Option<Arc<dyn Greeting>>) -> Self {
        let (current, dialing) = (Mutex::default(), Arc::default());
        Self(Arc::new(ConnectionInner { dialer, runtime, current, dialing, greeting }))
    }

    /// The clock of all that is sent here.
    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.0.dialer.clock
    }

    /// The tokio runtime on which the connection lives.
    pub(super) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Whether there is a connection now.
    pub fn is_made(&self) -> bool {
        self.present().is_some()
    }

    /// Whether commands can be sent at once, or wait for the first connection.
    pub fn is_ready(&self) -> bool {
        let current = self.0.current.lock();
        current.connection.is_some() || current.ended == 0 && current.failed.is_none()
    }

    /// Makes a connection in the background, unless there is one, or an attempt is under way.
    pub fn prepare(&self) {
        if Arc::strong_count(&self.0.dialing) > 1 || self.recent_failure().is_some() {
            return;
        }
        let this = self.clone();
        let turn = Arc::clone(&self.0.dialing);
        drop(self.0.runtime.spawn(async move {
            drop(this.connect().await);
            // It counts as an attempt until now.
            drop(turn);
        }));
    }

    /// Gives the present connection up, so that the next one is greeted anew.
    pub fn part(&self) {
        let present = self.0.current.lock().connection.as_ref().map(|present| present.generation);
        if let Some(generation) = present {
            self.give_up(generation);
        }
    }

    /// Calls a script, once more if the connection ends before the answer; indeterminate if it was sent and
    /// has no answer by the deadline.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when there is no answer, or the server refuses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the answer unread; the script may have run.
    pub async fn call(
        &self,
        call: ScriptCall<'_>,
        deadline: Instant,
    ) -> Result<Answered, StoreError> {
        match self.exchange(call, deadline).await {
            Err(ExchangeFailed { connection_ended: true, .. }) => {
                // Boxed, as other rare paths are: otherwise the future of every call would be large.
                let repeated = Box::pin(self.exchange(call, deadline)).await;
                // The first copy may have run, even if the second did not.
                repeated.map_err(|failed| failed.error.or_unknown())
            }
            answer => answer.map_err(|failed| failed.error),
        }
    }

    /// Calls a script, once; indeterminate if it was sent and has no answer by the deadline.
    // ADR 0028
    pub(super) async fn exchange(
        &self,
        call: ScriptCall<'_>,
        deadline: Instant,
    ) -> Result<Answered, ExchangeFailed> {
        let present = self.usable(deadline).await.map_err(|error| self.0.dialer.named(error))?;
        let sent_at = self.clock().now();
        let call = if present.liveness.needs_proof(sent_at) { call.proving() } else { call };
        match self.send(&present, call, deadline).await {
            Ok(Ok(answered)) => {
                if call.proves {
                    present.liveness.proven(sent_at);
                }
                present.liveness.answered(sent_at, self.clock().now());
                if refused_by_a_replica(&answered.answer) {
                    self.give_up(present.generation);
                }
                Ok(answered)
            }
            Ok(Err(error)) => {
                if spoils_connection(&error) {
                    self.give_up(present.generation);
                } else {
                    present.liveness.heard(self.clock().now());
                }
                let named = self.0.dialer.named_in(present.epoch, classify(&error));
                Err(ExchangeFailed { error: named, connection_ended: error.is_io_error() })
            }
            Err(late) => Err(self.judge(present, sent_at, Some(late)).into()),
        }
    }

    /// The present connection, or a new one if commands wait for it, see [`new`](Self::new).
    async fn usable(&self, deadline: Instant) -> Result<Present, StoreError> {
        if let Some(present) = self.present() {
            return Ok(present);
        }
        if self.0.greeting.is_none() || self.is_ready() {
            let connecting = Box::pin(self.connect());
            return within(self.clock(), deadline, connecting).await.unwrap_or_else(not_in_time);
        }
        self.prepare();
        let failed = self.0.current.lock().failed.as_ref().map(|(_, error)| error.clone());
        Err(failed.unwrap_or_else(|| {
            let what = "the connection has ended, and a new one is being made";
            StoreError::new(StoreErrorKind::Definite, what, NOT_THERE)
        }))
    }

    pub(super) fn present(&self) -> Option<Present> {
        let present = self.0.current.lock().connection.clone()?;
        if present.epoch == self.0.dialer.route.epochs().now() {
            return Some(present);
        }
        // Another server is the master now.
        self.give_up(present.generation);
        None
    }

    /// Calls by digest, and with the whole text if the server does not know it; fails with the
    /// command that has no answer by the deadline.
    async fn send(
        &self,
        present: &Present,
        mut call: ScriptCall<'_>,
        deadline: Instant,
    ) -> Result<Result<Answered, RedisError>, LateAnswer> {
        loop {
            let (mut connection, command) = (present.connection.clone(), call.command());
            let is_asking = self.0.dialer.is_asking();
            let (acks, limit) = (call.acks, deadline.saturating_since(self.clock().now()));
            // Owned, so that a late answer can be waited for by a task.
            let sent = async move { send(&mut connection, command, is_asking, acks, limit).await };
            let mut sending: LateAnswer = Box::pin(sent);
            let answer = select! {
                biased;
                answer = within(self.clock(), deadline, sending.as_mut()) => answer,
                // The old master may hang, and its answer would say nothing about the new one.
                () = self.0.dialer.route.epochs().left(present.epoch) => {
                    Some(Err(io::Error::other("the server is not the master any more").into()))
                }
            };
            match answer {
                Some(Err(error)) if call.is_unknown(&error) => {
                    present.liveness.heard(self.clock().now());
                    call = call.with_body();
                }
                answer => return answer.ok_or(sending),
            }
        }
    }

    /// Makes an error of an answer to one command of many that the server refused.
    pub(super) fn unless_refused(&self, answer: Value) -> Result<Value, StoreError> {
        let Some(words) = refusal(&answer) else { return Ok(answer) };
        // An answer is awaited only until there is another master.
        let ConnectionInner { dialer, .. } = &*self.0;
        Err(dialer.named_in(dialer.route.epochs().now(), classify_words(&words)))
    }

    /// The error of a command that others took along and that is not answered by its own deadline.
    pub(super) fn overdue(&self, sent_at: Instant) -> StoreError {
        match self.present() {
            Some(present) => self.judge(present, sent_at, None),
            None => self.0.dialer.named(unanswered()),
        }
    }

    /// The error of a command that was not answered in time. Gives the connection up, or asks it by a `PING`,
    /// and then gives it up unless it answers.
    fn judge(&self, present: Present, sent_at: Instant, late: Option<LateAnswer>) -> StoreError {
        let (now, epoch) = (self.clock().now(), present.epoch);
        if present.liveness.is_dead(sent_at, now) {
            self.give_up(present.generation);
            return self.0.dialer.named_in(epoch, unanswered());
        }
        let error = present.liveness.unanswered(sent_at, now);
        if let Some(late) = late {
            self.hear_late(&present.liveness, late);
        }
        if present.liveness.begin_asking() {
            let this = self.clone();
            drop(self.0.runtime.spawn(async move {
                if this.answers(&present).await {
                    present.liveness.done();
                } else {
                    this.give_up(present.generation);
                }
            }));
        }
        self.0.dialer.named_in(epoch, error)
    }

    /// Waits a while for an answer that nobody needs any more: it shows that the connection works.
    fn hear_late(&self, liveness: &Arc<Liveness>, late: LateAnswer) {
        let (clock, liveness) = (Arc::clone(&self.0.dialer.clock), Arc::clone(liveness));
        drop(self.0.runtime.spawn(async move {
            let until = clock.now() + liveness.patience() * 2;
            let answer = within(&*clock, until, late).await;
            if answer.is_some_and(|answer| !answer.as_ref().is_err_and(spoils_connection)) {
                liveness.heard(clock.now());
            }
        }));
    }

    /// Whether a connection answers, and its answers belong to its commands. After one lost answer,
    /// every later one would be taken for the answer to another command.
    async fn answers(&self, present: &Present) -> bool {
        let mut connection = present.connection.clone();
        let word = format!("leasehold:{}", self.clock().now().since_origin().as_nanos());
        let mut ping = redis::cmd("PING");
        ping.arg(&word);
        let mut asking = pin!(connection.send_packed_command(&ping));
        let patience = present.liveness.patience();
        // If tasks are polled late, old answers look new. So this is the limit in any case.
        let until = self.clock().now() + patience * PING_PATIENCES;
        loop {
            let asked_at = self.clock().now();
            let deadline = until.min(asked_at + patience);
            match within(self.clock(), deadline, asking.as_mut()).await {
                Some(Ok(Value::BulkString(answer))) => return answer == word.as_bytes(),
                // A server that refuses a `PING` has read it. Any other error may be the answer to
                // another command.
                Some(Ok(Value::ServerError(error))) => {
                    return ["NOPERM", "BUSY", "LOADING"].contains(&error.code());
                }
                // Many answers may be ahead of this one.
                None if present.liveness.heard_since(asked_at) && self.clock().now() < until => {}
                _ => return false,
            }
        }
    }

    /// The shortest round trip that the present connection has seen.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.present().map(|present| present.liveness.round_trip())
    }

    /// Makes a connection unless another call just did; one attempt at a time.
    pub(super) async fn connect(&self) -> Result<Present, StoreError> {
        let turn = Arc::clone(&self.0.dialing).lock_owned().await;
        if let Some(present) = self.present() {
            return Ok(present);
        }
        self.recent_failure().map_or(Ok(()), Err)?;
        let this = self.clone();
        // A task of its own runtime, where the connection lives: it outlasts its caller.
        let dial = self.0.runtime.spawn(async move {
            let deadline = this.clock().now() + this.0.dialer.connect_timeout;
            let mut dialed = this.dial(deadline).await;
            if dialed.as_ref().is_err_and(|not_dialed| not_dialed.was_cut) {
                // Once only: a server may end every connection.
                dialed = this.dial(deadline).await;
            }
            let outcome = this.install(dialed);
            drop(turn);
            outcome
        });
        dial.await.unwrap_or_else(|died| Err(no_runtime(&died)))
    }

    async fn dial(&self, deadline: Instant) -> Result<Present, NotDialed> {
        let generation = {
            let mut current = self.0.current.lock();
            current.generation += 1;
            current.generation
        };
        let (clock, ending) = (self.clock(), self.ending(generation));
        let Dialed { connection, round_trip, proven_at, epoch, witness } =
            Box::pin(self.0.dialer.dial(deadline, ending)).await?;
        if self.0.current.lock().ended >= generation {
            return Err(NotDialed::ended());
        }
        if let Some(greeting) = &self.0.greeting {
            let greeting = greeting.greet(connection.clone());
            within(clock, deadline, greeting).await.unwrap_or_else(not_in_time)?;
        }
        let liveness = Arc::new(Liveness::new(clock.now(), round_trip, proven_at));
        Ok(Present { connection, generation, epoch, liveness, _witness: witness })
    }

    /// Called when a connection ends, on the task that reads it.
    fn ending(&self, generation: u64) -> impl Fn(PushInfo) -> Result<(), ()> + use<> {
        let inner = Arc::downgrade(&self.0);
        move |push| {
            if push.kind == PushKind::Disconnection
                && let Some(inner) = inner.upgrade()
            {
                Self(inner).give_up(generation);
            }
            Ok(())
        }
    }

    fn install(&self, dialed: Result<Present, NotDialed>) -> Result<Present, StoreError> {
        let now = self.clock().now();
        let mut current = self.0.current.lock();
        let NotDialed { error, .. } = match dialed {
            Ok(present) if current.ended >= present.generation => NotDialed::ended(),
            Ok(present) => {
                current.connection = Some(present.clone());
                current.failed = None;
                return Ok(present);
            }
            Err(not_dialed) => not_dialed,
        };
        current.failed = Some((now, error.clone()));
        Err(error)
    }

    fn recent_failure(&self) -> Option<StoreError> {
        let now = self.clock().now();
        let current = self.0.current.lock();
        let (at, error) = current.failed.as_ref()?;
        (now.saturating_since(*at) < FAILURE_LASTS).then(|| error.clone())
    }

    /// Forgets a connection, unless it was replaced already.
    fn give_up(&self, generation: u64) {
        let mut current = self.0.current.lock();
        current.ended = current.ended.max(generation);
        let is_present =
            current.connection.as_ref().is_some_and(|present| present.generation == generation);
        let ended = if is_present { current.connection.take() } else { None };
        drop(current);
        // Outside of the lock: it may be the last handle, which ends the connection's task.
        drop(ended);
    }
}

/// Whether an answer says that a replica refused a command: another server is the master now.
fn refused_by_a_replica(answer: &Value) -> bool {
    let Value::Array(answers) = answer else { return false };
    answers.iter().filter_map(refusal).any(|words| is_readonly(&words))
}
