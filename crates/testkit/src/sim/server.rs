use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_core::{
    Clock, FenceSettings, LockName, LockStore, MemoryStore, RuntimeId, StoreError, StoreErrorKind,
    seam::Part,
    store::{
        Ask, Command, HoldAnswer, Inspect, Inspection, Listener, Push, ReleaseAnswer, RenewAnswer,
        Renewals, Reply,
    },
};

use super::{behind::Behind, network::Outcome, servers::Fleet};
use crate::{ManualClock, Mistake, WrongServer};

/// The server of a simulated world: it takes its time, and every push leaves through a mailbox.
#[derive(Debug)]
pub(super) struct Server {
    clock: ManualClock,
    store: WrongServer,
    outbox: Arc<Outbox>,
    mailboxes: Mutex<BTreeMap<RuntimeId, Arc<Mailbox>>>,
}

/// Pushes that the server has made, in order.
#[derive(Debug, Default)]
struct Outbox(Mutex<Vec<(usize, Push)>>);

/// Where the server puts pushes for one runtime.
#[derive(Debug)]
struct Mailbox {
    process: usize,
    outbox: Weak<Outbox>,
}

impl Listener for Mailbox {
    fn on_push(&self, push: Push) {
        // The network knows whether the runtime listens.
        if let Some(outbox) = self.outbox.upgrade()
            && push != Push::Listening
        {
            lock(&outbox.0).push((self.process, push));
        }
    }
}

impl Server {
    /// The least time that passes with every command.
    const PACE: Duration = Duration::from_micros(1);

    /// An empty server, whose time of day is behind that of the world by something.
    pub(super) fn new(clock: &ManualClock, by: Duration, mistake: Option<Mistake>) -> Self {
        let own = Arc::new(Behind { clock: clock.clone(), by });
        let memory = MemoryStore::new(own, FenceSettings::default());
        let store = WrongServer::new(Arc::new(memory), mistake);
        let (outbox, mailboxes) = (Arc::default(), Mutex::default());
        Self { clock: clock.clone(), store, outbox, mailboxes }
    }

    pub(super) fn memory(&self) -> &MemoryStore {
        self.store.memory()
    }

    /// Reads the pushes for a runtime from now on.
    pub(super) fn watch(&self, process: usize, runtime: RuntimeId) {
        let mailbox = Arc::new(Mailbox { process, outbox: Arc::downgrade(&self.outbox) });
        lock(&self.mailboxes).insert(runtime, Arc::clone(&mailbox));
        let mailbox: Weak<Mailbox> = Arc::downgrade(&mailbox);
        self.store.listen(runtime, mailbox);
    }

    /// Executes a command; the pushes that it made come before its answer.
    pub(super) fn execute(&self, command: &Command) -> (Outcome, Vec<(usize, Push)>) {
        self.clock.advance(Self::PACE);
        let deadline = self.clock.now() + Duration::from_secs(1);
        let outcome = at_once(self.store.send(command.clone(), deadline));
        (outcome, std::mem::take(&mut *lock(&self.outbox.0)))
    }

    /// Answers as a replica would that was never told of any lock: a refusal, unless that is its
    /// mistake.
    pub(super) fn answer_as_replica(&self, command: &Command) -> Outcome {
        self.clock.advance(Self::PACE);
        if self.store.mistake() != Some(Mistake::AnswersAsReplica) {
            return Err(refusal("the server is a replica"));
        }
        // It runs what writes nothing there.
        match command {
            Command::Renew(Renewals { batch }) => {
                Ok(Reply::Renew(batch.iter().map(|_| Ok(RenewAnswer::Gone)).collect()))
            }
            Command::Hold(_) => Ok(Reply::Hold(HoldAnswer::Gone)),
            Command::Release(_) => Ok(Reply::Release(ReleaseAnswer::Gone)),
            Command::Inspect(Inspect { names }) => {
                let free = |_| Ok(Inspection::Free { last_fence: None });
                Ok(Reply::Inspect(names.iter().map(free).collect()))
            }
            _ => Err(refusal("a replica takes no writes")),
        }
    }

    /// Forgets one part of what is known of a name.
    pub(super) fn lose(&self, name: &LockName, part: Part) {
        self.clock.advance(Self::PACE);
        self.memory().lose(name, part);
        self.clock.advance(Self::PACE);
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.clock.advance(Self::PACE);
        self.memory().clear();
        self.clock.advance(Self::PACE);
    }

    /// Looks at a lock, unseen.
    pub(super) fn inspect(&self, name: &LockName) -> Inspection {
        let deadline = self.clock.now() + Duration::from_secs(1);
        at_once(self.memory().inspect(name, deadline)).expect("the embedded store answers")
    }
}

/// What a server says that executes nothing at present.
pub(super) fn refusal(what: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Definite, what, "try again").as_answer()
}

/// The output of a future that waits for nothing.
fn at_once<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the embedded store never waits"),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at a simulated server from within, unseen; clones look at the same.
#[derive(Debug, Clone)]
pub struct Peek(pub(super) Arc<Mutex<Fleet>>);

impl Peek {
    /// What the server has of a lock.
    pub fn inspect(&self, name: &LockName) -> Inspection {
        let fleet = lock(&self.0);
        fleet.nodes[fleet.home(name)].server.inspect(name)
    }
}
