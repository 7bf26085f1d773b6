use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use leasehold::{
    Fence, LockName, Stamp,
    time::{Clock, Instant},
};
use leasehold_core::{
    AcquisitionId, Mode, Replication, RuntimeId, RuntimeLabel, StoreError, Ttl,
    lease::HoldUpdate,
    store::{
        Acquire, AcquireAnswer, Ask, Granted, Heartbeat, Heartbeats, Hold, Listener, Push, Release,
        RenewAnswer, Renewal, Renewals, Waiter, Withdraw,
    },
};
use leasehold_fencing::{Verdict, judge};
use leasehold_quorum::QuorumStore;
use leasehold_testkit::{
    Event, History, ManualClock,
    sim::{Dice, Drift, SimNode},
};

use super::{super::plan::millis, plan::PATIENCE};

/// A lock in a run: what was seen of it, and the storage behind it.
#[derive(Debug, Clone)]
pub(crate) struct Lock {
    pub(crate) name: LockName,
    pub(crate) history: History,
    gate: Arc<Mutex<(Option<Stamp>, u64)>>,
}

impl Lock {
    pub(crate) fn new(number: usize) -> Self {
        let name = LockName::new(format!("lock/{number}")).unwrap();
        Self { name, history: History::new(), gate: Arc::default() }
    }

    fn write(&self, stamp: Stamp, at: Instant) {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = matches!(judge(gate.0, stamp), Verdict::Admit(_));
        if accepted {
            gate.0 = Some(stamp);
        }
        gate.1 += 1;
        let (fence, lease, order) = (stamp.fence, stamp.lease, gate.1);
        self.history.record(Event::Wrote { fence, lease, at, order, accepted });
    }
}

/// What was pushed to a process.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Pushed>);

#[derive(Debug, Default)]
struct Pushed {
    /// By acquisition, with the lock.
    grants: BTreeMap<AcquisitionId, (LockName, Granted, u64)>,
    /// What is asked for at present.
    wanted: BTreeSet<AcquisitionId>,
}

impl Listener for Inbox {
    fn on_push(&self, push: Push) {
        if let Push::Granted { name, id, granted, heartbeat } = push {
            self.lock().grants.insert(id, (name, granted, heartbeat));
        }
    }
}

impl Inbox {
    fn take(&self, id: AcquisitionId) -> Option<(Granted, u64)> {
        let (_, granted, heartbeat) = self.lock().grants.remove(&id)?;
        Some((granted, heartbeat))
    }

    /// A grant that nobody wants, as a runtime withdraws it.
    fn orphan(&self) -> Option<(LockName, AcquisitionId)> {
        let mut pushed = self.lock();
        let Pushed { grants, wanted } = &mut *pushed;
        let id = grants.keys().find(|id| !wanted.contains(*id)).copied()?;
        let (name, ..) = grants.remove(&id)?;
        Some((name, id))
    }

    fn lock(&self) -> MutexGuard<'_, Pushed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a deed on its way.
pub(crate) type Post = Arc<dyn Fn(Duration, Box<dyn FnOnce(Instant) + Send>) + Send + Sync>;

/// A task that takes locks and gives them back.
pub(crate) struct Worker {
    pub(crate) number: u64,
    pub(crate) store: Arc<QuorumStore<SimNode>>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) local: ManualClock,
    pub(crate) world: ManualClock,
    pub(crate) drift: Drift,
    pub(crate) dice: Dice,
    pub(crate) runtime: RuntimeId,
    /// Shared by the tasks of a process.
    pub(crate) numbers: Arc<AtomicU64>,
    pub(crate) watermarks: Arc<Mutex<BTreeMap<LockName, Fence>>>,
    pub(crate) locks: Vec<Lock>,
    pub(crate) post: Post,
    pub(crate) ttl: Duration,
    pub(crate) ends: Arc<AtomicBool>,
    pub(crate) done: Arc<AtomicU64>,
    /// Whether belief counts from the answer; a mistake.
    pub(crate) believes_answers: bool,
}

/// A grant, and when what it answers was sent, by the clock of the process.
type Got = (Granted, Instant);
type Asking<'a> = Pin<Box<dyn Future<Output = Option<Got>> + Send + 'a>>;

impl Worker {
    pub(crate) async fn run(self) {
        while !self.ends.load(Ordering::Relaxed) {
            let lock =
                &self.locks[usize::try_from(self.dice.below(self.locks.len() as u64)).unwrap_or(0)];
            self.round(lock).await;
            while let Some((name, id)) = self.inbox.orphan() {
                self.withdraw(&name, id).await;
            }
            self.sleep(self.dice.spread(Duration::from_micros(10), millis(60))).await;
        }
        // What was asked for comes until now.
        self.sleep(PATIENCE * 6).await;
        while let Some((name, id)) = self.inbox.orphan() {
            self.withdraw(&name, id).await;
        }
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    async fn round(&self, lock: &Lock) {
        let id = AcquisitionId::new(self.runtime, self.numbers.fetch_add(1, Ordering::Relaxed));
        let asked_at = self.world.now();
        let waits = self.dice.below(3) > 0;
        self.inbox.lock().wanted.insert(id);
        if let Some((granted, sent_at)) = self.ask(lock, id, waits).await {
            self.granted(lock, id, asked_at, (granted, sent_at)).await;
        } else {
            self.withdraw(&lock.name, id).await;
        }
        // A push may have told of the same grant.
        let mut inbox = self.inbox.lock();
        inbox.wanted.remove(&id);
        inbox.grants.remove(&id);
    }

    async fn granted(
        &self,
        lock: &Lock,
        id: AcquisitionId,
        asked_at: Instant,
        (granted, sent_at): Got,
    ) {
        let (fence, worker) = (granted.first, self.number);
        {
            let mut all = self.watermarks.lock().unwrap_or_else(PoisonError::into_inner);
            let seen = all.entry(lock.name.clone()).or_insert(fence);
            *seen = (*seen).max(granted.last);
        }
        let until = self.until(sent_at, granted.remaining);
        if self.local.now() < until {
            let granted_at = self.world.now();
            lock.history.record(Event::Granted { worker, fence, lease: id, asked_at, granted_at });
            self.hold(lock, id, fence, until).await;
        }
        self.give_back(lock, id, fence).await;
    }

    fn until(&self, sent_at: Instant, remaining: Duration) -> Instant {
        let from = if self.believes_answers { self.local.now() } else { sent_at };
        (from + remaining) - (remaining / 100).max(millis(2))
    }

    /// Asks in some copies, of which two may be under way at once.
    async fn ask(&self, lock: &Lock, id: AcquisitionId, waits: bool) -> Option<Got> {
        let mut sent = Vec::new();
        let rounds = if waits { self.dice.from_to(1, 6) } else { 1 };
        for round in 0..rounds {
            let number = self.numbers.fetch_add(2, Ordering::Relaxed);
            sent.push((number, self.local.now()));
            let late = self.dice.spread(Duration::from_micros(10), millis(40));
            let mut one: Asking<'_> =
                Box::pin(self.copy(lock, id, waits.then_some(number), round > 0));
            let mut two: Asking<'_> = if self.dice.below(2) == 0 {
                Box::pin(async move {
                    self.sleep(late).await;
                    self.copy(lock, id, waits.then_some(number + 1), waits).await
                })
            } else {
                Box::pin(async { None })
            };
            let (mut first, mut second) = (None, None);
            let stops_early = self.dice.below(2) == 0;
            std::future::poll_fn(|cx| {
                if first.is_none()
                    && let Poll::Ready(got) = one.as_mut().poll(cx)
                {
                    first = Some(got);
                }
                if second.is_none()
                    && let Poll::Ready(got) = two.as_mut().poll(cx)
                {
                    second = Some(got);
                }
                let has = |got: &Option<Option<Got>>| matches!(got, Some(Some(_)));
                let is_enough = stops_early && (has(&first) || has(&second));
                if is_enough || first.is_some() && second.is_some() {
                    return Poll::Ready(());
                }
                Poll::Pending
            })
            .await;
            drop((one, two));
            if let Some(got) = first.flatten().or_else(|| second.flatten()) {
                return Some(got);
            }
            for _ in 0..self.dice.below(5) {
                if !waits {
                    break;
                }
                self.sleep(self.dice.spread(millis(1), millis(60))).await;
                if let Some((granted, number)) = self.inbox.take(id) {
                    let from = sent.iter().find(|(known, _)| *known == number)?;
                    return Some((granted, from.1));
                }
            }
        }
        None
    }

    /// One copy of an acquire.
    async fn copy(
        &self,
        lock: &Lock,
        id: AcquisitionId,
        number: Option<u64>,
        is_heartbeat: bool,
    ) -> Option<Got> {
        let label = RuntimeLabel::new("a worker");
        let ttl = Ttl::new(self.ttl).unwrap();
        let watermark = {
            let all = self.watermarks.lock().unwrap_or_else(PoisonError::into_inner);
            all.get(&lock.name).copied()
        };
        let wait = number.map(|number| Heartbeat { number, claim_window: self.ttl });
        let sent_at = self.local.now();
        let deadline = sent_at + PATIENCE * 3;
        let (name, mode) = (lock.name.clone(), Mode::Write);
        let (keeps, acks) = (false, Replication::NONE);
        let answer: Result<AcquireAnswer, StoreError> = match wait {
            Some(heartbeat) if is_heartbeat => {
                let batch = vec![Waiter { name, id, mode, ttl, watermark, keeps, heartbeat }];
                let answers = self.store.ask(Heartbeats { batch, label }, deadline).await;
                answers.and_then(|mut answers| answers.remove(0))
            }
            wait => {
                let acquire = Acquire { name, id, mode, ttl, watermark, label, keeps, wait, acks };
                self.store.ask(acquire, deadline).await
            }
        };
        match answer {
            Ok(AcquireAnswer::Granted(granted)) => Some((granted, sent_at)),
            _ => None,
        }
    }

    async fn hold(&self, lock: &Lock, id: AcquisitionId, fence: Fence, mut until: Instant) {
        let believe = |until: Instant| {
            let until = self.drift.world(until);
            lock.history.record(Event::BelievedUntil { lease: id, until });
        };
        let lose = || lock.history.record(Event::Lost { lease: id, at: self.world.now() });
        believe(until);
        let mut holds = 1;
        for change in 1..=self.dice.below(8) {
            let longest = if self.dice.below(4) == 0 { self.ttl } else { self.ttl / 4 };
            self.sleep(self.dice.spread(Duration::from_micros(50), longest)).await;
            if self.local.now() >= until {
                return lose();
            }
            let sent_at = self.local.now();
            let deadline = sent_at + PATIENCE * 2;
            match self.dice.below(4) {
                0 => self.write(lock, id, fence),
                1 => {
                    holds += 1;
                    let count = std::num::NonZeroU32::new(holds).unwrap();
                    let update = HoldUpdate { count, number: change };
                    let (name, acks) = (lock.name.clone(), Replication::NONE);
                    let ttl = Ttl::new(self.ttl).unwrap();
                    let hold = Hold { name, id, fence, update, ttl, acks };
                    let _ = self.store.ask(hold, deadline).await;
                }
                _ => match self.renew(lock, id, fence, deadline).await {
                    Some(RenewAnswer::Renewed { remaining }) => {
                        until = until.max(self.until(sent_at, remaining));
                        if self.local.now() >= until {
                            return lose();
                        }
                        believe(until);
                    }
                    Some(_) => return lose(),
                    None => {}
                },
            }
        }
        if self.local.now() >= until {
            return lose();
        }
        lock.history.record(Event::Released { lease: id, at: self.world.now() });
    }

    async fn renew(
        &self,
        lock: &Lock,
        id: AcquisitionId,
        fence: Fence,
        deadline: Instant,
    ) -> Option<RenewAnswer> {
        let (name, ttl, acks) = (lock.name.clone(), Ttl::new(self.ttl).unwrap(), Replication::NONE);
        let batch = vec![Renewal { name, id, fence, ttl, acks }];
        let answers = self.store.ask(Renewals { batch }, deadline).await;
        answers.ok()?.into_iter().next()?.ok()
    }

    fn write(&self, lock: &Lock, id: AcquisitionId, fence: Fence) {
        let (lock, stamp) = (lock.clone(), Stamp::new(fence, id));
        let after = self.dice.spread(Duration::from_micros(10), millis(50));
        (self.post)(after, Box::new(move |at| lock.write(stamp, at)));
    }

    /// Releases until it is answered; a late renewal may travel beside it.
    async fn give_back(&self, lock: &Lock, id: AcquisitionId, fence: Fence) {
        let mut late = pin!(async {
            if self.dice.below(2) == 0 {
                // While the release is under way.
                self.sleep(self.dice.spread(Duration::from_micros(1), millis(4))).await;
                let deadline = self.local.now() + PATIENCE;
                self.renew(lock, id, fence, deadline).await;
            }
        });
        let mut is_late_over = false;
        for _ in 0..20 {
            let deadline = self.local.now() + PATIENCE * 2;
            let (name, keep, next) = (lock.name.clone(), None, None);
            let release = Release { name, id, fence, keep, next };
            let mut release = pin!(self.store.ask(release, deadline));
            let answer = std::future::poll_fn(|cx| {
                if !is_late_over {
                    is_late_over = late.as_mut().poll(cx).is_ready();
                }
                release.as_mut().poll(cx)
            })
            .await;
            if answer.is_ok() {
                break;
            }
            self.sleep(millis(20)).await;
        }
        if !is_late_over {
            late.await;
        }
    }

    async fn withdraw(&self, name: &LockName, id: AcquisitionId) {
        for _ in 0..20 {
            let deadline = self.local.now() + PATIENCE * 2;
            let withdraw = Withdraw { name: name.clone(), id };
            if self.store.ask(withdraw, deadline).await.is_ok() {
                return;
            }
            self.sleep(millis(20)).await;
        }
    }

    async fn sleep(&self, time: Duration) {
        self.local.sleep_until(self.local.now() + time).await;
    }
}
