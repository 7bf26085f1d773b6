use std::{
    collections::{BTreeMap, VecDeque},
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use leasehold_core::{
    Clock, Instant, LockName, LockStore, RuntimeId, StoreError, StoreErrorKind,
    store::{Command, Inspect, Listener, Reply, StoreFuture},
};

use super::{
    facts::CommandFacts,
    fault::Fault,
    gate::Gate,
    kind::CommandKind,
    letter::Letter,
    log::{Delivery, Executed},
    pushes::Pushes,
    rule::{PushRule, Rule},
};

/// A store in front of another, which strikes chosen commands with a [`Fault`] and passes the rest.
///
/// Clones are the same store: give one to the code under test and keep one. A command is sent when
/// its future is first polled.
#[derive(Debug, Clone)]
pub struct FaultyStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    inner: Arc<dyn LockStore>,
    clock: Arc<dyn Clock>,
    book: Mutex<Book>,
    pushes: Arc<Pushes>,
}

#[derive(Debug, Default)]
struct Book {
    rules: Vec<Rule>,
    sent: BTreeMap<CommandKind, usize>,
    executed: Vec<Executed>,
    late: VecDeque<Command>,
    shard: Option<fn(&LockName) -> usize>,
}

impl LockStore for FaultyStore {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        match command {
            Command::Inspect(Inspect { names }) => Box::pin(self.look_at_each(names, deadline)),
            command => Box::pin(self.send_through(command, deadline)),
        }
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.shared.pushes.listen(&*self.shared.inner, runtime, listener);
    }

    fn shard(&self, name: &LockName) -> usize {
        self.shared.shard(name)
    }
}

impl FaultyStore {
    /// How long a late delivery may take on the store behind.
    const LATE_LIMIT: Duration = Duration::from_secs(5);

    /// Stands in front of `inner`, whose clock must be the same.
    pub fn new(inner: Arc<dyn LockStore>, clock: Arc<dyn Clock>) -> Self {
        let (book, pushes) = (Mutex::default(), Arc::default());
        Self { shared: Arc::new(Shared { inner, clock, book, pushes }) }
    }

    /// Adds a rule. Each counts the commands that it matches; where several strike the same one,
    /// the rule that was injected first does.
    pub fn inject(&self, rule: Rule) {
        self.shared.book().rules.push(rule);
    }

    /// Adds a rule for pushes, which counts and strikes as those for commands do.
    pub fn inject_push(&self, rule: PushRule) {
        self.shared.pushes.inject(rule);
    }

    /// Forgets all rules; what is on its way stays there.
    pub fn heal(&self) {
        self.shared.book().rules.clear();
        self.shared.pushes.heal();
    }

    /// Says from now on in which part a name lives, in place of the store behind.
    pub fn divide(&self, shard: fn(&LockName) -> usize) {
        self.shared.book().shard = Some(shard);
    }

    /// How many pushes the store behind has sent, struck or not; without those that only say that
    /// it can be heard.
    pub fn pushed(&self) -> usize {
        self.shared.pushes.pushed()
    }

    /// How many pushes wait for [`deliver_pushes`](Self::deliver_pushes).
    pub fn held_pushes(&self) -> usize {
        self.shared.pushes.held()
    }

    /// Lets the listeners hear the pushes that were held, in order; how many there were.
    pub fn deliver_pushes(&self) -> usize {
        self.shared.pushes.deliver()
    }

    /// Tells every listener that the store can be heard again, as after a gap.
    pub fn reconnect(&self) {
        self.shared.pushes.reconnect();
    }

    /// How many commands of a kind were sent, executed or not.
    pub fn sent(&self, kind: CommandKind) -> usize {
        self.shared.book().sent.get(&kind).copied().unwrap_or_default()
    }

    /// How many commands of a kind reached the store behind, late ones among them.
    pub fn executed(&self, kind: CommandKind) -> usize {
        self.shared.book().executed.iter().filter(|done| done.command.kind() == kind).count()
    }

    /// The commands that reached the store behind, in order.
    pub fn log(&self) -> Vec<Executed> {
        self.shared.book().executed.clone()
    }

    /// Forgets the log and the counts.
    pub fn clear_log(&self) {
        let mut book = self.shared.book();
        book.executed.clear();
        book.sent.clear();
    }

    /// How many commands wait for a late delivery.
    pub fn late(&self) -> usize {
        self.shared.book().late.len()
    }

    /// Executes the commands that wait for a late delivery, in the order in which they came to
    /// wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves undelivered commands waiting; the one being executed is
    /// indeterminate.
    pub async fn deliver_late(&self) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        loop {
            let Some(command) = self.shared.book().late.pop_front() else { return deliveries };
            let deadline = self.shared.clock.now() + Self::LATE_LIMIT;
            let outcome = self.shared.execute(&command, deadline, true).await;
            deliveries.push(Delivery { command, outcome });
        }
    }

    /// Looks at one lock after the other, so that a fault strikes one look alone.
    async fn look_at_each(
        &self,
        names: Vec<LockName>,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        let mut seen = Vec::with_capacity(names.len());
        for name in names {
            let look = Command::Inspect(Inspect { names: vec![name] });
            match self.send_through(look, deadline).await {
                Ok(Reply::Inspect(one)) => seen.extend(one),
                Ok(other) => return Ok(other),
                Err(error) => seen.push(Err(error)),
            }
        }
        Ok(Reply::Inspect(seen))
    }

    /// Sends a command through the faults.
    async fn send_through(&self, command: Command, deadline: Instant) -> Result<Reply, StoreError> {
        let shared = &*self.shared;
        match shared.strike(&command) {
            None => shared.execute(&command, deadline, false).await,
            Some(Fault::Fail(error)) => Err(error),
            Some(Fault::LoseRequest) => Err(shared.silence(&command, deadline).await),
            Some(Fault::LoseReply) => {
                let _ = shared.execute(&command, deadline, false).await;
                Err(shared.silence(&command, deadline).await)
            }
            Some(Fault::BreakReply) => {
                let _ = shared.execute(&command, deadline, false).await;
                Err(broken(&command))
            }
            Some(Fault::LateRequest) => {
                shared.deliver_later(command.clone());
                Err(shared.silence(&command, deadline).await)
            }
            Some(Fault::Duplicate) => {
                let answer = shared.execute(&command, deadline, false).await;
                shared.deliver_later(command);
                answer
            }
            Some(Fault::Delay(gate)) => {
                let letter = Letter::send(shared, command.clone());
                if !shared.passes(&gate, deadline).await {
                    return Err(silent(&command));
                }
                drop(letter.arrive());
                shared.execute(&command, deadline, false).await
            }
            Some(Fault::DelayReply(gate)) => {
                let answer = shared.execute(&command, deadline, false).await;
                if shared.passes(&gate, deadline).await { answer } else { Err(silent(&command)) }
            }
            Some(Fault::Hang { executed }) => {
                if executed {
                    let _ = shared.execute(&command, deadline, false).await;
                }
                pending().await
            }
            Some(Fault::Panic) => panic!("the store panics, as the test wants it"),
        }
    }
}

impl Shared {
    /// The part of the store in which a name lives.
    fn shard(&self, name: &LockName) -> usize {
        let told = self.book().shard;
        told.map_or_else(|| self.inner.shard(name), |shard| shard(name))
    }

    /// Puts a command aside for a late delivery.
    pub(super) fn deliver_later(&self, command: Command) {
        self.book().late.push_back(command);
    }

    /// Counts a command and says what strikes it.
    fn strike(&self, command: &Command) -> Option<Fault> {
        let mut book = self.book();
        *book.sent.entry(command.kind()).or_default() += 1;
        // Every rule counts, also those that come too late for this command.
        let met: Vec<_> = book.rules.iter_mut().filter_map(|rule| rule.meets(command)).collect();
        met.into_iter().next()
    }

    async fn execute(
        &self,
        command: &Command,
        deadline: Instant,
        late: bool,
    ) -> Result<Reply, StoreError> {
        self.book().executed.push(Executed { command: command.clone(), late });
        self.inner.send(command.clone(), deadline).await
    }

    /// Hears nothing until the deadline.
    async fn silence(&self, command: &Command, deadline: Instant) -> StoreError {
        self.clock.sleep_until(deadline).await;
        silent(command)
    }

    /// Whether a gate opens before the deadline.
    async fn passes(&self, gate: &Gate, deadline: Instant) -> bool {
        tokio::select! {
            biased;
            () = gate.pass() => true,
            () = self.clock.sleep_until(deadline) => false,
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn silent(command: &Command) -> StoreError {
    unknown(command, "nothing was heard before the deadline")
}

fn broken(command: &Command) -> StoreError {
    unknown(command, "the connection broke before the answer")
}

fn unknown(command: &Command, what: &'static str) -> StoreError {
    let error = StoreError::new(StoreErrorKind::Indeterminate, what, "repeat the command");
    match &command.names()[..] {
        [name] => error.for_lock(name),
        _ => error,
    }
}
