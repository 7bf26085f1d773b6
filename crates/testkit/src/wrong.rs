use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Clock, Fence, Instant, LockName, LockStore, RuntimeId, StoreError,
    StoreErrorKind,
    store::{
        Acquire, AcquireAnswer, Command, Granted, Heartbeats, Listener, Push, Release,
        ReleaseAnswer, RenewAnswer, Renewals, Reply, StoreFuture, Waiter, Withdraw, WithdrawAnswer,
    },
};

/// What a wrong runtime does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// What a push granted is released by the fence that the push told, and not withdrawn by its
    /// id: a newer grant of the same id then stands.
    ReleasesOrphansByFence,
    /// The grant in an answer counts from the arrival of the answer.
    CountsAnswersFromArrival,
    /// A pushed grant counts from the last heartbeat that was answered "not yet".
    CountsPushesFromNotYet,
    /// The first task does not hear what is pushed while its own command awaits the answer.
    IsDeafWhileItAsks,
    /// A heartbeat waits for the answer to the one before.
    BeatsOneAtATime,
    /// When a turn ends, commands that were not answered are forgotten.
    ForgetsUnanswered,
    /// An acquisition gives its place up when a grant that was pushed to it is gone.
    GivesUpPlaceOfGonePush,
    /// No release knows that its lock is to stay closed.
    KeepsNothingClosed,
    /// It does not hear that another runtime wants a lock that it keeps.
    IgnoresWanted,
    /// Once another runtime has wanted a lock, it hears the same of each later turn, a while after
    /// that began.
    RepeatsWanted,
    /// A withdrawal counts as answered when it is sent: a try does not wait for it.
    HidesWithdrawals,
}

/// A wrong runtime: a right one over a store that changes what it sends and hears.
#[derive(Debug)]
// ADR 0047
pub struct WrongStore {
    store: Arc<dyn LockStore>,
    clock: Arc<dyn Clock>,
    wrong: Wrong,
    notes: Arc<Mutex<Notes>>,
    relay: Mutex<Option<Arc<Relay>>>,
}

/// How long after the beginning of a turn it says that the lock is wanted.
const A_WHILE: Duration = Duration::from_millis(20);

/// What the store has to remember to be wrong.
#[derive(Debug, Default)]
struct Notes {
    /// The first fences of pushed grants.
    pushed: BTreeMap<AcquisitionId, Fence>,
    /// The last heartbeats that were answered "not yet".
    not_yet: BTreeMap<AcquisitionId, u64>,
    /// Commands in flight that ask for a lock or keep a place.
    asks: BTreeMap<AcquisitionId, usize>,
    /// Acquisitions whose turns were released.
    released: BTreeSet<AcquisitionId>,
    /// Locks that another runtime has wanted.
    wanted: BTreeSet<LockName>,
}

/// Passes pushes on to the runtime.
#[derive(Debug)]
struct Relay {
    runtime: Weak<dyn Listener>,
    wrong: Wrong,
    notes: Arc<Mutex<Notes>>,
}

impl LockStore for WrongStore {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        Box::pin(self.send_wrong(command, deadline))
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        let (wrong, notes) = (self.wrong, Arc::clone(&self.notes));
        let relay = Arc::new(Relay { runtime: listener, wrong, notes });
        let listener: Arc<dyn Listener> = Arc::clone(&relay) as _;
        self.store.listen(runtime, Arc::downgrade(&listener));
        *lock(&self.relay) = Some(relay);
    }

    fn shard(&self, name: &LockName) -> usize {
        self.store.shard(name)
    }
}

impl WrongStore {
    /// A store for a runtime with this clock that is to be wrong.
    pub fn new(store: Arc<dyn LockStore>, clock: Arc<dyn Clock>, wrong: Wrong) -> Self {
        Self { store, clock, wrong, notes: Arc::default(), relay: Mutex::default() }
    }

    async fn send_wrong(
        &self,
        mut command: Command,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        match (self.wrong, &mut command) {
            (Wrong::ReleasesOrphansByFence, Command::Withdraw(Withdraw { name, id })) => {
                let fence = lock(&self.notes).pushed.get(id).copied();
                if let Some(fence) = fence {
                    return self.release_orphan(name.clone(), *id, fence, deadline).await;
                }
            }
            (Wrong::ForgetsUnanswered, Command::Withdraw(Withdraw { id, .. }))
                if lock(&self.notes).released.contains(id) =>
            {
                return Ok(Reply::Withdraw(WithdrawAnswer { ended_grant: false }));
            }
            (Wrong::ForgetsUnanswered, Command::Release(Release { id, .. })) => {
                lock(&self.notes).released.insert(*id);
            }
            (Wrong::KeepsNothingClosed, Command::Release(Release { keep, .. })) => *keep = None,
            (Wrong::HidesWithdrawals, Command::Withdraw(Withdraw { .. })) => {
                let store = Arc::clone(&self.store);
                tokio::spawn(async move { store.send(command, deadline).await });
                return Ok(Reply::Withdraw(WithdrawAnswer { ended_grant: false }));
            }
            (Wrong::BeatsOneAtATime, command) => return self.beat(command, deadline).await,
            _ => {}
        }
        let _asking = Asking::of(&self.notes, &command);
        let sent_at = self.clock.now();
        let mut answer = self.store.send(command.clone(), deadline).await?;
        match (self.wrong, &mut answer) {
            (Wrong::CountsAnswersFromArrival, answer) => {
                let took = self.clock.now().saturating_since(sent_at);
                grants(answer).for_each(|granted| granted.remaining += took);
            }
            (Wrong::RepeatsWanted, Reply::Acquire(AcquireAnswer::Granted(granted))) => {
                if let Command::Acquire(Acquire { name, id, .. }) = &command {
                    self.repeat_wanted(name, *id, granted.first);
                }
            }
            (Wrong::CountsPushesFromNotYet, answer) => lock(&self.notes).note(&command, answer),
            (Wrong::GivesUpPlaceOfGonePush, Reply::Renew(answers)) => {
                for (renewal, answer) in renewals(&command).iter().zip(&*answers) {
                    let pushed = lock(&self.notes).pushed.get(&renewal.id).copied();
                    if *answer == Ok(RenewAnswer::Gone) && pushed == Some(renewal.fence) {
                        let (name, id) = (renewal.name.clone(), renewal.id);
                        let command = Command::Withdraw(Withdraw { name, id });
                        let _ = self.store.send(command, deadline).await;
                    }
                }
            }
            _ => {}
        }
        Ok(answer)
    }

    /// Says of a new turn what the runtime has heard of an older one.
    fn repeat_wanted(&self, name: &LockName, id: AcquisitionId, fence: Fence) {
        let relay = lock(&self.relay).clone();
        let Some(relay) = relay.filter(|_| lock(&self.notes).wanted.contains(name)) else { return };
        let (clock, push) =
            (Arc::clone(&self.clock), Push::Wanted { name: name.clone(), id, fence });
        drop(tokio::spawn(async move {
            clock.sleep_until(clock.now() + A_WHILE).await;
            relay.on_push(push);
        }));
    }

    async fn release_orphan(
        &self,
        name: LockName,
        id: AcquisitionId,
        fence: Fence,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        let release = Command::Release(Release { name, id, fence, keep: None, next: None });
        let answer = self.store.send(release, deadline).await?;
        let ended_grant = answer != Reply::Release(ReleaseAnswer::Gone);
        Ok(Reply::Withdraw(WithdrawAnswer { ended_grant }))
    }

    /// Sends a command, but refuses a second command about one place while the first is in flight.
    async fn beat(&self, command: &mut Command, deadline: Instant) -> Result<Reply, StoreError> {
        let mut all = Vec::new();
        if let Command::Heartbeat(Heartbeats { batch, .. }) = command {
            all = batch.clone();
            batch.retain(|waiter| !self.is_asking(waiter.id));
            if batch.is_empty() {
                return Err(one_at_a_time());
            }
        } else if let Command::Release(Release { next: Some(next), .. }) = command
            && self.is_asking(next.id)
        {
            return Err(one_at_a_time());
        }
        let _asking = Asking::of(&self.notes, command);
        match self.store.send(command.clone(), deadline).await? {
            Reply::Heartbeat(answers) => {
                let mut answers: BTreeMap<_, _> =
                    waiters(command).iter().map(|waiter| waiter.id).zip(answers).collect();
                let answer = |waiter: &Waiter| {
                    answers.remove(&waiter.id).unwrap_or_else(|| Err(one_at_a_time()))
                };
                Ok(Reply::Heartbeat(all.iter().map(answer).collect()))
            }
            other => Ok(other),
        }
    }

    fn is_asking(&self, id: AcquisitionId) -> bool {
        lock(&self.notes).asks.contains_key(&id)
    }
}

impl Notes {
    /// Remembers the heartbeats of a command that were answered "not yet".
    fn note(&mut self, command: &Command, answer: &Reply) {
        match (command, answer) {
            (
                Command::Acquire(Acquire { id, wait: Some(heartbeat), .. }),
                Reply::Acquire(answer),
            ) => {
                self.answered(*id, heartbeat.number, answer);
            }
            (Command::Heartbeat(Heartbeats { batch, .. }), Reply::Heartbeat(answers)) => {
                for (waiter, answer) in batch.iter().zip(answers) {
                    if let Ok(answer) = answer {
                        self.answered(waiter.id, waiter.heartbeat.number, answer);
                    }
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, id: AcquisitionId, number: u64, answer: &AcquireAnswer) {
        if let AcquireAnswer::Queued(_) = answer {
            let last = self.not_yet.entry(id).or_default();
            *last = number.max(*last);
        }
    }
}

impl Listener for Relay {
    fn on_push(&self, mut push: Push) {
        if let Push::Granted { id, granted, heartbeat, .. } = &mut push {
            let mut notes = lock(&self.notes);
            notes.pushed.insert(*id, granted.first);
            match self.wrong {
                Wrong::IsDeafWhileItAsks if notes.asks.contains_key(id) => return,
                Wrong::CountsPushesFromNotYet => {
                    *heartbeat = notes.not_yet.get(id).copied().unwrap_or(*heartbeat);
                }
                _ => {}
            }
        }
        if let Push::Wanted { name, .. } = &push {
            lock(&self.notes).wanted.insert(name.clone());
            if self.wrong == Wrong::IgnoresWanted {
                return;
            }
        }
        if let Some(runtime) = self.runtime.upgrade() {
            runtime.on_push(push);
        }
    }
}

/// A command in flight that asks for a lock or keeps a place.
struct Asking {
    notes: Arc<Mutex<Notes>>,
    ids: Vec<AcquisitionId>,
}

impl Asking {
    fn of(notes: &Arc<Mutex<Notes>>, command: &Command) -> Self {
        let ids = match command {
            Command::Acquire(Acquire { id, .. }) => vec![*id],
            Command::Heartbeat(Heartbeats { batch, .. }) => {
                batch.iter().map(|waiter| waiter.id).collect()
            }
            Command::Release(Release { next: Some(next), .. }) => vec![next.id],
            _ => Vec::new(),
        };
        for id in &ids {
            *lock(notes).asks.entry(*id).or_default() += 1;
        }
        Self { notes: Arc::clone(notes), ids }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut notes = lock(&self.notes);
        for id in &self.ids {
            let asks = notes.asks.get_mut(id).map_or(0, |asks| {
                *asks -= 1;
                *asks
            });
            if asks == 0 {
                notes.asks.remove(id);
            }
        }
    }
}

/// The grants in an answer.
fn grants(answer: &mut Reply) -> impl Iterator<Item = &mut Granted> {
    let (one, many): (Option<&mut Granted>, &mut [_]) = match answer {
        Reply::Acquire(AcquireAnswer::Granted(granted))
        | Reply::Release(ReleaseAnswer::NextGranted(granted)) => (Some(granted), &mut []),
        Reply::Heartbeat(answers) => (None, answers),
        _ => (None, &mut []),
    };
    let granted = |answer| match answer {
        &mut Ok(AcquireAnswer::Granted(ref mut granted)) => Some(granted),
        _ => None,
    };
    one.into_iter().chain(many.iter_mut().filter_map(granted))
}

fn waiters(command: &Command) -> &[Waiter] {
    match command {
        Command::Heartbeat(Heartbeats { batch, .. }) => batch,
        _ => &[],
    }
}

fn renewals(command: &Command) -> &[leasehold_core::store::Renewal] {
    match command {
        Command::Renew(Renewals { batch }) => batch,
        _ => &[],
    }
}

fn one_at_a_time() -> StoreError {
    let what = "an earlier command about the same place awaits its answer";
    StoreError::new(StoreErrorKind::Definite, what, "wait for it")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
