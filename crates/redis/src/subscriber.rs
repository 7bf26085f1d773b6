use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt, ready};
use leasehold_core::{
    Clock, Entropy, Mutex, RuntimeId, StoreError, StoreErrorKind, SystemEntropy, backoff,
    store::{Listener, Push},
    within,
};
use redis::{PushInfo, PushKind, Value, aio::MultiplexedConnection};
use tokio::{runtime::Handle, select, sync::Notify, task::JoinSet};

use super::{
    channel::Channel,
    classify::spoils_connection,
    cluster::is_elsewhere,
    decode,
    dialer::{Dialed, Dialer},
    needed::not_dialed,
    not_dialed::NotDialed,
};
use crate::durations::{AFTER_REFUSAL, RESUBSCRIBING, SETTLED, SUBSCRIPTION_CHECK};

/// Chooses the server of the next subscription. Each server passes on what is published at any other.
pub type NextDialer =
    Arc<dyn Fn() -> BoxFuture<'static, Result<Arc<Dialer>, StoreError>> + Send + Sync>;

/// Keeps one listener subscribed to one channel, on one connection at a time.
///
/// The end of a connection is noticed at once, and a half-open one within five seconds: by a `PING`
/// without an answer, or by the timeouts of its socket.
// ADR 0030
struct Subscriber {
    next_dialer: NextDialer,
    clock: Arc<dyn Clock>,
    channel: Channel,
    listener: Weak<dyn Listener>,
}

impl Subscriber {
    /// Runs for as long as the listener lives; dropping the future closes the connection.
    async fn run(self) {
        let mut failures: u32 = 0;
        // Until the first spare subscription works, messages come on another one: none was lost.
        let mut may_have_missed = !self.channel.is_spare();
        let mut has_worked = false;
        while self.is_wanted() {
            let name = self.channel.name().await;
            let subscribed = self.subscribe(&name, may_have_missed, has_worked).await;
            may_have_missed = true;
            has_worked |= subscribed.is_ok();
            let pause = match subscribed {
                Ok((dialer, connection, receiver)) => {
                    let endpoint = &dialer.endpoint;
                    if failures > 0 && !self.channel.is_spare() {
                        tracing::info!(%endpoint, "the runtime receives messages from the server again");
                    }
                    let subscribed_at = self.clock.now();
                    select! {
                        biased;
                        () = self.attend(&dialer, connection, &receiver) => {}
                        () = self.channel.renamed(&name) => {}
                    }
                    tracing::debug!(%endpoint, "a subscription ended");
                    let lasted = self.clock.now().saturating_since(subscribed_at);
                    failures = if lasted < SETTLED { failures.saturating_add(1) } else { 0 };
                    backoff(RESUBSCRIBING, failures, SystemEntropy.fraction())
                }
                Err(error) => {
                    let pause = self.pause_after(&error, failures);
                    failures = failures.saturating_add(1);
                    pause
                }
            };
            select! {
                biased;
                () = self.rest(pause) => {}
                () = self.channel.renamed(&name) => {}
            }
        }
    }

    async fn subscribe(
        &self,
        name: &str,
        may_have_missed: bool,
        has_worked: bool,
    ) -> Result<(Arc<Dialer>, Dialed, Arc<Receiver>), StoreError> {
        let dialer = (self.next_dialer)().await?;
        let receiver = Arc::new(Receiver {
            listener: Weak::clone(&self.listener),
            may_have_missed,
            closed: Notify::new(),
        });
        let pushes = Arc::clone(&receiver);
        let heard = move |push: PushInfo| {
            pushes.on_push(&push);
            Ok::<(), ()>(())
        };
        let to = (self.channel.verb(), name);
        let connection = subscribe(&dialer, to, has_worked, heard).await?;
        Ok((dialer, connection, receiver))
    }

    /// Stays with a connection until it is lost, or nobody listens.
    async fn attend(&self, dialer: &Dialer, subscribed: Dialed, receiver: &Receiver) {
        // The witness counts for as long as the connection is in use.
        let Dialed { mut connection, epoch, witness: _witness, .. } = subscribed;
        loop {
            select! {
                biased;
                () = receiver.closed.notified() => return,
                () = dialer.route.epochs().left(epoch) => return,
                () = self.clock.sleep_until(self.clock.now() + SUBSCRIPTION_CHECK) => {}
            }
            if !self.is_wanted() || !self.is_alive(&mut connection).await {
                return;
            }
        }
    }

    /// Whether the connection answers; a refusal is an answer.
    async fn is_alive(&self, connection: &mut MultiplexedConnection) -> bool {
        let ping = redis::cmd("PING");
        let answer = ping.query_async::<Value>(connection);
        let answer = within(&*self.clock, self.clock.now() + SUBSCRIPTION_CHECK, answer).await;
        answer.is_some_and(|answer| !answer.as_ref().is_err_and(spoils_connection))
    }

    fn is_wanted(&self) -> bool {
        self.listener.strong_count() > 0
    }

    /// The pause after a failure. Logs the first failure, and every refusal, as refusals are rare.
    fn pause_after(&self, error: &StoreError, failures: u32) -> Duration {
        const WHAT: &str =
            "the runtime receives no messages from the server; waiting goes on by heartbeat";
        // The slot of a channel may come back before this process hears that it was away.
        let is_refusal = error.kind() == StoreErrorKind::Config && !is_elsewhere(error);
        if self.channel.is_spare() {
            tracing::debug!(%error, "no sharded channel; messages cross the bus of the Cluster");
        } else if is_refusal || failures == 0 {
            tracing::warn!(%error, "{WHAT}");
        } else {
            tracing::debug!(%error, "{WHAT}");
        }
        let pauses = if is_refusal { AFTER_REFUSAL } else { RESUBSCRIBING };
        backoff(pauses, failures, SystemEntropy.fraction())
    }

    /// Sleeps, at most one check longer than the listener lives.
    async fn rest(&self, pause: Duration) {
        let until = self.clock.now() + pause;
        while self.is_wanted() && self.clock.now() < until {
            self.clock.sleep_until(until.min(self.clock.now() + SUBSCRIPTION_CHECK)).await;
        }
    }
}

/// What to do if a server that answers other commands does not answer `SUBSCRIBE`.
pub const NOT_SUBSCRIBED: &str = "let a proxy before the server pass subscriptions on, or go around it; else check server and network";

/// Makes a connection that brings what is published on a channel. `verb` is the command that subscribes to it,
/// which may have worked before.
pub(super) async fn subscribe(
    dialer: &Dialer,
    (verb, channel): (&'static str, &str),
    has_worked: bool,
    heard: impl Fn(PushInfo) -> Result<(), ()> + Send + Sync + 'static,
) -> Result<Dialed, StoreError> {
    let clock = &*dialer.clock;
    let connected_by = clock.now() + dialer.connect_timeout;
    let deadline = connected_by + dialer.connect_timeout;
    let subscribing = async {
        let connecting = dialer.dial(connected_by, heard);
        let mut new = connecting.await.map_err(|not_dialed| not_dialed.error)?;
        let mut asking = redis::cmd(verb);
        asking.arg(channel);
        let asked = select! {
            biased;
            asked = asking.query_async::<Value>(&mut new.connection) => asked,
            // The old master may hang.
            () = dialer.route.epochs().left(new.epoch) => return Err(NotDialed::ended().error),
        };
        asked.map_err(|error| not_dialed(verb, error).for_now_if(has_worked).error)?;
        Ok(new)
    };
    let subscribed = within(clock, deadline, Box::pin(subscribing)).await.unwrap_or_else(|| {
        // To connect has a deadline of its own.
        let what = format!("cannot subscribe: {verb} was not answered in time");
        Err(StoreError::new(StoreErrorKind::Definite, what, NOT_SUBSCRIBED))
    });
    subscribed.map_err(|error| dialer.named(error.by(deadline, clock.now())))
}

/// Receives the pushes of one connection, on the task that reads it: nothing is queued in between.
struct Receiver {
    listener: Weak<dyn Listener>,
    /// Whether messages may have been lost before the connection.
    may_have_missed: bool,
    /// Notified when no more pushes will come, or the listener is gone.
    closed: Notify,
}

impl Receiver {
    /// Handles a push that the client library read, or an event of the connection.
    fn on_push(&self, push: &PushInfo) {
        match push.kind {
            PushKind::Message | PushKind::SMessage => match push.data.as_slice() {
                [_channel, Value::BulkString(payload)] => match decode::push(payload) {
                    Some(push) => self.pass_on(push),
                    // That of the check before the first command, see `preflight.lua`.
                    None if payload == b"preflight" => {}
                    None => self.pass_on(Push::Unreadable),
                },
                _ => self.pass_on(Push::Unreadable),
            },
            // Passed on from here, so that it comes before the first message.
            PushKind::Subscribe | PushKind::SSubscribe if self.may_have_missed => {
                self.pass_on(Push::Listening);
            }
            // The server ends a sharded one when its slot moves.
            PushKind::Unsubscribe | PushKind::SUnsubscribe | PushKind::Disconnection => {
                self.closed.notify_one();
            }
            _ => {}
        }
    }

    fn pass_on(&self, push: Push) {
        match self.listener.upgrade() {
            Some(listener) => listener.on_push(push),
            None => self.closed.notify_one(),
        }
    }
}

/// The subscriptions of a store: at most one for a runtime, each a task with a connection.
pub struct Subscriptions {
    next_dialer: NextDialer,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    /// One task for each, which ends when its set is dropped.
    tasks: Mutex<BTreeMap<RuntimeId, JoinSet<()>>>,
}

impl Subscriptions {
    /// None yet; tasks and connections will live on the given tokio runtime.
    pub fn new(next_dialer: NextDialer, clock: Arc<dyn Clock>, runtime: Handle) -> Self {
        Self { next_dialer, clock, runtime, tasks: Mutex::default() }
    }

    /// The same, always at one server.
    pub fn of_one(dialer: Arc<Dialer>, runtime: Handle) -> Self {
        let clock = Arc::clone(&dialer.clock);
        Self::new(Arc::new(move || ready(Ok(Arc::clone(&dialer))).boxed()), clock, runtime)
    }

    /// Passes the messages on the channel of a runtime to a listener, from now on.
    pub fn listen(&self, runtime: RuntimeId, channel: String, listener: Weak<dyn Listener>) {
        let mut tasks = self.tasks.lock();
        // The old subscription ends first.
        tasks.remove(&runtime);
        self.start(&mut tasks, runtime, Channel { plain: channel, tag: None }, listener);
    }

    /// As [`listen`](Self::listen), on any channel, unless the runtime listens already.
    pub(super) fn listen_once(
        &self,
        runtime: RuntimeId,
        channel: Channel,
        listener: impl FnOnce() -> Option<Weak<dyn Listener>>,
    ) {
        let mut tasks = self.tasks.lock();
        if !tasks.contains_key(&runtime)
            && let Some(listener) = listener()
        {
            self.start(&mut tasks, runtime, channel, listener);
        }
    }

    fn start(
        &self,
        tasks: &mut BTreeMap<RuntimeId, JoinSet<()>>,
        runtime: RuntimeId,
        channel: Channel,
        listener: Weak<dyn Listener>,
    ) {
        tasks.retain(|_, task| task.try_join_next().is_none());
        let (next_dialer, clock) = (Arc::clone(&self.next_dialer), Arc::clone(&self.clock));
        let subscriber = Subscriber { next_dialer, clock, channel, listener };
        tasks.entry(runtime).or_default().spawn_on(subscriber.run(), &self.runtime);
    }
}
