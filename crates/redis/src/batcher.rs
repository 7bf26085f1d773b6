use std::{
    collections::VecDeque,
    slice,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::join_all;
use leasehold_core::{
    Instant, Mutex, Replication, StoreError,
    StoreErrorKind::{Config, Definite, Indeterminate},
    store::only,
    within,
};
use redis::Value;
use tokio::{runtime::RuntimeFlavor, sync::oneshot, task::yield_now};

use super::{
    acknowledge::Answered,
    classify::{OUT_OF_REACH, RUNTIME_STOPPED},
    connection::{Connection, ExchangeFailed},
    decode,
    dialect::Dialect,
    script::{Script, ScriptCall},
    shared_calls::{SharedCallPolicy, is_served},
};
use crate::durations::{FINDING_LASTS, GATHERING, SLOW_YIELD};

/// Commands for one connection: those that wait for it at the same moment travel as one call
/// (group commit).
///
/// If few calls are in flight, the caller sends its command itself. Otherwise a task, the courier,
/// sends all waiting commands as one call. While enough couriers are under way, commands wait. A full
/// batch does not wait, and after `GATHERING` the caller starts another courier. So a long round trip
/// delays no other command, and no command depends on another caller.
///
/// On a tokio runtime with one thread, a courier that leaves the server without work answers half
/// of its callers first, so that server and client work at the same time. With several threads, a
/// task that blocks one of them would delay the other half.
///
/// A command may overtake another of its name after a cut, as a heartbeat, or between two couriers.
/// That is harmless, as every command names its acquisition.
// ADR 0027
pub struct Batcher<D: Dialect> {
    connection: Connection,
    dialect: Arc<D>,
    /// Whether callers are answered in halves.
    splits: bool,
    /// Whether its calls wait for acknowledgements. The server answers nothing else on the
    /// connection meanwhile, so only one call at a time is sent. Otherwise the next call would wait
    /// at the server, and its deadline would not allow for that.
    waits: bool,
    /// Set on a node of a Cluster, where a call cannot declare keys of several slots: whether the node
    /// takes calls that declare none. Only commands of the fast path share such a call, see `SharedCallPolicy`.
    gathers: Option<Arc<AtomicBool>>,
    state: Mutex<BatcherState<D::Command>>,
}

struct BatcherState<C> {
    /// The callers that wait for the answer to a command that they sent themselves.
    alone: usize,
    couriers: usize,
    /// The couriers that have not taken their first batch yet.
    coming: usize,
    waiting: VecDeque<Queued<C>>,
    /// The number of the next command that waits.
    next: u64,
    /// Until when couriers do not yield: the tokio runtime is busy with other tasks.
    busy_until: Instant,
    gathering: SharedCallPolicy,
}

pub(super) type CommandAnswer = Result<Answered, StoreError>;

/// Where the answer to a command goes: to the caller, who waits for it.
type ReplyTo<C> = oneshot::Sender<Delivered<C>>;

/// How a command ended that a courier took along.
enum Delivered<C> {
    Answered(CommandAnswer),
    /// It is to be sent as a call of its own. An earlier copy has done nothing, unless it may have
    /// run.
    Alone {
        command: C,
        may_have_run: bool,
    },
}

/// A command that waits to be sent.
struct Queued<C> {
    number: u64,
    command: C,
    /// What all commands of its call have in common: acknowledgements and retention.
    terms: (Replication, u64),
    deadline: Instant,
    answer: ReplyTo<C>,
}

/// The most commands of one call: a script must not block the server for long.
pub const MAX_COMMANDS: usize = 64;

/// How many commands a call may pass over to find those of its terms.
const MAX_PASSED: usize = 4 * MAX_COMMANDS;

/// With fewer calls in flight, a caller sends its command itself, so that few tasks do not wait for
/// each other. The first number is for several threads, the second for a single one.
const USUAL_CALLS: [usize; 2] = [2, 1];

/// The smallest batch whose callers are answered in halves.
const SPLIT: usize = 4;

/// How many couriers may be under way before commands gather.
const USUAL_COURIERS: usize = 2;

impl<D: Dialect> Batcher<D> {
    /// Sends the commands of a dialect on a connection. `gathers` is for a node of a Cluster: whether it takes
    /// calls that declare no keys. With `waits`, calls wait for acknowledgements.
    pub fn new(
        connection: Connection,
        dialect: Arc<D>,
        gathers: Option<Arc<AtomicBool>>,
        waits: bool,
    ) -> Arc<Self> {
        let is_single = connection.runtime().runtime_flavor() == RuntimeFlavor::CurrentThread;
        let state = BatcherState {
            alone: 0,
            couriers: 0,
            coming: 0,
            waiting: VecDeque::new(),
            next: 0,
            busy_until: Instant::default(),
            gathering: SharedCallPolicy::default(),
        };
        let (state, splits) = (Mutex::new(state), is_single && !waits);
        Arc::new(Self { connection, dialect, splits, waits, gathers, state })
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Sends a command, alone or with others. Fails as indeterminate if it was sent and has no answer
    /// in time.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when there is no answer, or the server refuses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the answer unread; the command may be sent, and may have run.
    pub async fn send(self: &Arc<Self>, command: D::Command, deadline: Instant) -> CommandAnswer {
        match self.line_up(command, deadline) {
            Sent::Alone(command) => {
                let _alone = Alone(self);
                only(self.deliver(slice::from_ref(&command), deadline).await)
            }
            Sent::Later { number, mut answer } => {
                let pushed_at = self.connection.clock().now();
                let soon = (pushed_at + GATHERING).min(deadline);
                if !self.waits {
                    if let Some(answer) = within(self.connection.clock(), soon, &mut answer).await {
                        return self.settle(answer.ok(), deadline).await;
                    }
                    self.hurry(number);
                }
                match within(self.connection.clock(), deadline, &mut answer).await {
                    Some(answer) => self.settle(answer.ok(), deadline).await,
                    None if self.take_back(number) => Err(not_sent()),
                    None => Err(self.connection.overdue(pushed_at)),
                }
            }
        }
    }

    /// The retention that the call of a command has, in ms.
    pub fn retention(&self, command: &D::Command) -> u64 {
        self.dialect.retention(command)
    }

    /// Lets a command wait for others, unless so few calls are in flight that its caller sends it.
    fn line_up(self: &Arc<Self>, command: D::Command, deadline: Instant) -> Sent<D::Command> {
        let terms = (D::acks(&command), self.retention(&command));
        let mut state = self.state.lock();
        if self.is_idle(&state) || !self.shares(&state, &command) {
            state.alone += 1;
            return Sent::Alone(command);
        }
        let (sender, answer) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back(Queued { number, command, terms, deadline, answer: sender });
        if self.waits {
            self.go_on(state);
        } else if state.waiting.len().is_multiple_of(self.max_commands())
            || state.couriers < USUAL_COURIERS
        {
            self.send_courier(state);
        }
        Sent::Later { number, answer }
    }

    /// Whether so few calls are in flight that a caller sends its command itself.
    fn is_idle(&self, state: &BatcherState<D::Command>) -> bool {
        let usual = if self.waits { 1 } else { USUAL_CALLS[usize::from(self.splits)] };
        state.waiting.is_empty() && state.alone + state.couriers < usual
    }

    /// Whether a command waits for others, or for its turn.
    fn shares(&self, state: &BatcherState<D::Command>, command: &D::Command) -> bool {
        let Some(gathers) = self.gathers.as_ref().filter(|_| !self.waits) else { return true };
        D::quick_lock(command).is_some_and(|lock| {
            gathers.load(Ordering::Relaxed)
                && state.gathering.admits(lock, self.connection.clock().now())
        })
    }

    /// The most commands of one call. On a Cluster, nothing shares a call that waits.
    fn max_commands(&self) -> usize {
        if self.waits && self.gathers.is_some() { 1 } else { MAX_COMMANDS }
    }

    /// The answer to a command that a courier took along, and perhaps gave back.
    async fn settle(
        self: &Arc<Self>,
        delivered: Option<Delivered<D::Command>>,
        deadline: Instant,
    ) -> CommandAnswer {
        let (command, may_have_run) = match delivered {
            Some(Delivered::Answered(answer)) => return answer,
            Some(Delivered::Alone { command, may_have_run }) => (command, may_have_run),
            None => return Err(gone()),
        };
        self.state.lock().alone += 1;
        let _alone = Alone(self);
        // Boxed, as other rare paths are: otherwise the future of every call would be large.
        let sending = Box::pin(self.deliver(slice::from_ref(&command), deadline));
        let answer = only(sending.await);
        answer.map_err(|error| if may_have_run { error.or_unknown() } else { error })
    }

    /// Takes back a command that was not sent; returns whether it still waited.
    fn take_back(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let at = state.waiting.binary_search_by_key(&number, |waiting| waiting.number);
        at.ok().and_then(|at| state.waiting.remove(at)).is_some()
    }

    /// Sends commands as one call, and returns the answer to each. All of them need the same
    /// acknowledgements and have the same [retention](Self::retention).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the answers unread; the commands may have run.
    pub async fn deliver(&self, commands: &[D::Command], deadline: Instant) -> Vec<CommandAnswer> {
        let failed = match self.call(commands.iter(), deadline).await {
            Ok(answers) => return answers,
            Err(failed) => failed,
        };
        // Boxed, as other rare paths are: otherwise the future of every call would be large.
        if commands.len() > 1 && failed.error.is_answer() && failed.error.kind() == Config {
            return Box::pin(self.deliver_alone(commands, deadline)).await;
        }
        if failed.connection_ended && commands.iter().any(D::repeats) {
            return Box::pin(self.deliver_again(commands, deadline, &failed.error)).await;
        }
        commands.iter().map(|_| Err(failed.error.clone())).collect()
    }

    /// Sends commands as one call, once.
    async fn call<'a>(
        &self,
        commands: impl Iterator<Item = &'a D::Command> + Clone + Send + Sync,
        deadline: Instant,
    ) -> Result<Vec<CommandAnswer>, ExchangeFailed> {
        let count = commands.clone().count();
        let write = |to: &mut redis::Cmd| self.dialect.write(to, commands.clone());
        let acks = commands.clone().next().map_or(Replication::NONE, D::acks);
        let call = ScriptCall::new(D::script(acks), D::keys(count), &write).waiting_for(acks);
        let Answered { answer, counted } = self.connection.exchange(call, deadline).await?;
        match D::answers(answer) {
            Value::Array(answers) if answers.len() == count => {
                let each = |answer| {
                    let answer = self.connection.unless_refused(answer)?;
                    Ok(Answered { answer, counted: counted.clone() })
                };
                Ok(answers.into_iter().map(each).collect())
            }
            other => Err(decode::not_understood(&other).into()),
        }
    }

    /// Sends each command as a call of its own, all at once: the server has refused the call before
    /// it ran a command, perhaps because of the key of one of them.
    async fn deliver_alone(
        &self,
        commands: &[D::Command],
        deadline: Instant,
    ) -> Vec<CommandAnswer> {
        join_all(commands.iter().map(async |command| {
            match self.call(std::iter::once(command), deadline).await {
                Ok(answers) => only(answers),
                Err(failed) => Err(failed.error),
            }
        }))
        .await
    }

    /// Sends again, as one call, the commands that may be sent twice.
    async fn deliver_again(
        &self,
        commands: &[D::Command],
        deadline: Instant,
        failed: &StoreError,
    ) -> Vec<CommandAnswer> {
        let again = commands.iter().filter(|command| D::repeats(command));
        let mut repeated = match self.call(again.clone(), deadline).await {
            Ok(answers) => answers,
            // The first copy may have run, even if the second did not.
            Err(ExchangeFailed { error, .. }) => {
                again.map(|_| Err(error.clone().or_unknown())).collect()
            }
        }
        .into_iter();
        let answer = |command: &D::Command| {
            let answer = if D::repeats(command) { repeated.next() } else { None };
            answer.unwrap_or_else(|| Err(failed.clone()))
        };
        commands.iter().map(answer).collect()
    }

    /// Sends the commands of a courier.
    async fn carry(
        &self,
        commands: Vec<D::Command>,
        deadline: Instant,
    ) -> Vec<Delivered<D::Command>> {
        if commands.len() > 1
            && self.gathers.is_some()
            && let Some(script) = D::gathered()
        {
            return self.gather(script, commands, deadline).await;
        }
        let answers = self.deliver(&commands, deadline).await;
        answers.into_iter().map(Delivered::Answered).collect()
    }

    /// Sends commands as one call that declares no keys and serves the fast path alone. What it
    /// does not serve is given back.
    async fn gather(
        &self,
        script: &Script,
        commands: Vec<D::Command>,
        deadline: Instant,
    ) -> Vec<Delivered<D::Command>> {
        let count = commands.len();
        let write = |to: &mut redis::Cmd| self.dialect.write_gathered(to, &commands);
        let call = ScriptCall::new(script, 0, &write);
        let answers = match self.connection.exchange(call, deadline).await {
            Ok(Answered { answer: Value::Array(answers), .. }) if answers.len() == count => {
                Ok(answers)
            }
            Ok(other) => Err(decode::not_understood(&other.answer).into()),
            // The node has run none of them.
            Err(failed) if failed.error.is_answer() && failed.error.kind() != Indeterminate => {
                Ok(vec![Value::Nil; count])
            }
            Err(failed) => Err(failed),
        };
        let answers = match answers {
            Ok(answers) => answers,
            Err(ExchangeFailed { error, connection_ended }) => {
                let each = |command: D::Command| {
                    if connection_ended && D::repeats(&command) {
                        Delivered::Alone { command, may_have_run: true }
                    } else {
                        Delivered::Answered(Err(error.clone()))
                    }
                };
                return commands.into_iter().map(each).collect();
            }
        };
        let served = answers.iter().filter(|answer| is_served(answer)).count();
        let now = self.connection.clock().now();
        let mut state = self.state.lock();
        state.gathering.has_served(served, count, now);
        let each = |(command, answer): (D::Command, Value)| {
            if is_served(&answer) {
                return Delivered::Answered(Ok(Answered { answer, counted: None }));
            }
            if let Some(lock) = D::quick_lock(&command) {
                state.gathering.has_not_served(lock, now);
            }
            Delivered::Alone { command, may_have_run: false }
        };
        commands.into_iter().zip(answers).map(each).collect()
    }

    /// If only one call at a time is sent, starts a courier when none is in flight.
    fn go_on(self: &Arc<Self>, state: MutexGuard<'_, BatcherState<D::Command>>) {
        if self.waits && !state.waiting.is_empty() && state.alone + state.couriers == 0 {
            self.send_courier(state);
        }
    }

    /// Starts a courier for a command that still waits.
    fn hurry(self: &Arc<Self>, number: u64) {
        let state = self.state.lock();
        let still_waits = state.waiting.front().is_some_and(|first| first.number <= number);
        if still_waits && state.waiting.len() > state.coming * self.max_commands() {
            self.send_courier(state);
        }
    }

    /// Starts a courier if commands wait; returns whether some do.
    fn relieve(self: &Arc<Self>) -> bool {
        let state = self.state.lock();
        let waits = !state.waiting.is_empty();
        let most = if self.waits { 1 } else { USUAL_COURIERS };
        if waits && state.coming == 0 && state.couriers < most {
            self.send_courier(state);
        }
        waits
    }

    /// Whether a courier is to answer half of its callers first: no other call is in flight.
    fn splits(&self, now: Instant) -> bool {
        let state = self.state.lock();
        self.splits && state.couriers + state.alone == 1 && state.busy_until <= now
    }

    fn send_courier(self: &Arc<Self>, mut state: MutexGuard<'_, BatcherState<D::Command>>) {
        state.couriers += 1;
        state.coming += 1;
        drop(state);
        let courier = Courier { batcher: Arc::clone(self), is_under_way: true, is_coming: true };
        drop(self.connection.runtime().spawn(courier.run()));
    }
}

/// How a command is sent.
enum Sent<C> {
    Alone(C),
    Later { number: u64, answer: oneshot::Receiver<Delivered<C>> },
}

/// A command that its caller sends itself.
struct Alone<'a, D: Dialect>(&'a Arc<Batcher<D>>);

impl<D: Dialect> Drop for Alone<'_, D> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.alone -= 1;
        self.0.go_on(state);
    }
}

/// A task that sends what waits, until nothing does.
struct Courier<D: Dialect> {
    batcher: Arc<Batcher<D>>,
    is_under_way: bool,
    is_coming: bool,
}

impl<D: Dialect> Courier<D> {
    async fn run(mut self) {
        let spawned_at = self.batcher.connection.clock().now();
        for _ in 0..D::ROUNDS {
            self.pause(spawned_at).await;
        }
        while let Some(batch) = self.batch() {
            let CallBatch { commands, senders, deadline } = batch;
            let count = commands.len();
            let delivered = self.batcher.carry(commands, deadline).await;
            let mut answered = senders.into_iter().zip(delivered);
            let now = self.batcher.connection.clock().now();
            if D::SPLITS && count >= SPLIT && self.batcher.splits(now) {
                answer(answered.by_ref().take(count / 2));
                self.pause(now).await;
                if self.batcher.relieve() {
                    // One round for that courier, and one for the task of the connection.
                    self.pause(now).await;
                    self.pause(now).await;
                }
            }
            answer(answered);
            // Those who have been answered send their next commands first, so that these travel
            // together.
            self.pause(now).await;
        }
    }

    /// Lets other tasks run, unless they have taken long since `answered_at`, or a moment ago.
    async fn pause(&self, answered_at: Instant) {
        let Batcher { state, connection, .. } = &*self.batcher;
        if state.lock().busy_until > answered_at {
            return;
        }
        yield_now().await;
        let now = connection.clock().now();
        if now.saturating_since(answered_at) > SLOW_YIELD {
            state.lock().busy_until = now + FINDING_LASTS;
        }
    }

    /// The next batch of waiting commands, in order. A command whose caller has gone is left out. All
    /// commands of a batch have the terms of the first; others wait for the next one.
    fn batch(&mut self) -> Option<CallBatch<D::Command>> {
        let mut state = self.batcher.state.lock();
        if std::mem::take(&mut self.is_coming) {
            state.coming -= 1;
        }
        let (max, waits) = (self.batcher.max_commands(), self.batcher.waits);
        let size = state.waiting.len().min(max);
        let mut commands = Vec::with_capacity(size);
        let mut senders = Vec::with_capacity(size);
        let (mut due, mut shared, mut others) = (None, None, 0);
        while commands.len() < max
            && let Some(next) = state.waiting.get(others).filter(|_| others < MAX_PASSED)
        {
            let is_wanted = !next.answer.is_closed();
            if is_wanted && next.terms != *shared.get_or_insert(next.terms) {
                others += 1;
                continue;
            }
            let Some(Queued { command, deadline, answer, .. }) = state.waiting.remove(others)
            else {
                break;
            };
            if !is_wanted {
                continue;
            }
            // If the call waits for acknowledgements, the wait has to end before the earliest deadline.
            let both =
                |known: Instant| if waits { known.min(deadline) } else { known.max(deadline) };
            due = Some(due.map_or(deadline, both));
            commands.push(command);
            senders.push(answer);
        }
        if commands.is_empty() {
            // Under the same lock: what comes now needs another courier.
            state.couriers -= 1;
            self.is_under_way = false;
        }
        due.map(|deadline| CallBatch { commands, senders, deadline })
    }
}

fn answer<C>(answered: impl Iterator<Item = (ReplyTo<C>, Delivered<C>)>) {
    // Nobody waits for the answer of a call that was dropped.
    answered.for_each(|(reply, answer)| drop(reply.send(answer)));
}

impl<D: Dialect> Drop for Courier<D> {
    fn drop(&mut self) {
        if !self.is_under_way {
            return;
        }
        // Cut off: its tokio runtime has stopped, and no other courier will come.
        let mut state = self.batcher.state.lock();
        state.couriers -= 1;
        state.coming -= usize::from(self.is_coming);
        let unsent = std::mem::take(&mut state.waiting);
        drop(state);
        // Outside of the lock: it wakes those who wait.
        drop(unsent);
    }
}

/// Commands of one call, and who waits for their answers.
struct CallBatch<C> {
    commands: Vec<C>,
    senders: Vec<ReplyTo<C>>,
    deadline: Instant,
}

/// The error of a command that waited for its connection until its deadline.
pub(super) fn not_sent() -> StoreError {
    StoreError::new(Definite, "the connection did not take the command in time", OUT_OF_REACH)
}

/// The error of a command whose courier has ended with its tokio runtime.
fn gone() -> StoreError {
    let (what, remedy) = RUNTIME_STOPPED;
    StoreError::new(Indeterminate, what, remedy)
}
