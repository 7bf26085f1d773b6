use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, LockName, LockStore, MemoryStore, RuntimeId, RuntimeLabel,
    StoreError,
    lease::HoldUpdate,
    seam::Part,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Granted, Hold, HoldAnswer,
        Inspection, LeaseRecord, Listener, Push, Release, ReleaseAnswer, RenewAnswer, Renewal,
        Scan, ScanPage, StoreFuture, Waiter, Withdraw, WithdrawAnswer,
    },
};

/// A wrong decision of a server. The checks have to notice each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A renewal or a count of holds extends the lease of its acquisition, whatever its fence.
    ExtendsAnyFence,
    /// A release ends the lease of its acquisition, whatever its fence.
    ReleasesAnyFence,
    /// A count of holds adds one to the stored number, in place of setting it.
    AddsHolds,
    /// A renewal of a lease that is gone takes the free lock anew.
    RecreatesLeases,
    /// A grant has more tokens than the counter knows of.
    ReservesTooLittle,
    /// A withdrawal leaves no mark, so that a late copy of the acquire is served.
    LeavesNoMark,
    /// A withdrawal of an acquisition without a lease does nothing.
    WithdrawsLeasesOnly,
    /// A withdrawal also takes the place of another acquisition of the same runtime.
    WithdrawsAnyPlace,
    /// A replica answers as a master would; `sim/server.rs` carries it out.
    AnswersAsReplica,
}

/// A server in memory that makes one mistake, or none.
#[derive(Debug)]
pub struct WrongServer {
    memory: Arc<MemoryStore>,
    mistake: Option<Mistake>,
    /// Held here, because the store holds its listeners weakly.
    listeners: Mutex<Vec<Arc<Lengthening>>>,
}

impl WrongServer {
    /// The given store, and its mistake.
    pub fn new(memory: Arc<MemoryStore>, mistake: Option<Mistake>) -> Self {
        Self { memory, mistake, listeners: Mutex::default() }
    }

    /// The store that makes no mistakes.
    pub fn memory(&self) -> &Arc<MemoryStore> {
        &self.memory
    }

    /// The mistake.
    pub fn mistake(&self) -> Option<Mistake> {
        self.mistake
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// The lease that stands; `None` for a free lock.
    async fn lease(&self, name: &LockName, deadline: Instant) -> Option<LeaseRecord> {
        match self.memory.inspect(name, deadline).await {
            Ok(Inspection::Held(lease)) => Some(lease),
            _ => None,
        }
    }

    /// The fence of the lease that an acquisition has; `named` if it has none.
    async fn fence(
        &self,
        name: &LockName,
        id: AcquisitionId,
        named: FenceToken,
        deadline: Instant,
    ) -> FenceToken {
        let lease = self.lease(name, deadline).await.filter(|lease| lease.id == id);
        lease.map_or(named, |lease| lease.fence)
    }

    fn told(&self, granted: Granted) -> Granted {
        if self.makes(Mistake::ReservesTooLittle) { lengthened(granted) } else { granted }
    }

    fn told_to_asker(&self, answer: AcquireAnswer) -> AcquireAnswer {
        match answer {
            AcquireAnswer::Granted(granted) => AcquireAnswer::Granted(self.told(granted)),
            answer => answer,
        }
    }

    /// Grants a free lock anew to an acquisition whose lease is gone; returns the fence of the new
    /// lease.
    async fn recreate(&self, renewal: &Renewal, deadline: Instant) -> Option<FenceToken> {
        if self.lease(&renewal.name, deadline).await.is_some() {
            return None;
        }
        let Renewal { name, id, fence, ttl, acks } = renewal;
        let (id, ttl, watermark, keeps, wait) = (*id, *ttl, Some(*fence), false, None);
        let label = &RuntimeLabel::new("re-created");
        let acquire =
            Acquire { name, id, ttl, watermark, label, keeps, wait, acks: *acks, deadline };
        match self.memory.acquire(acquire).await {
            Ok(AcquireAnswer::Granted(granted)) => Some(granted.first),
            _ => None,
        }
    }
}

/// The same grant with 1024 tokens more than the counter knows.
fn lengthened(mut granted: Granted) -> Granted {
    granted.last = FenceToken::try_from(granted.last.get() + 1024).unwrap_or(granted.last);
    granted
}

/// Passes pushes on, with lengthened blocks.
#[derive(Debug)]
struct Lengthening(Weak<dyn Listener>);

impl Listener for Lengthening {
    fn on_push(&self, push: Push) {
        let push = match push {
            Push::Granted { name, id, granted, heartbeat } => {
                Push::Granted { name, id, granted: lengthened(granted), heartbeat }
            }
            push => push,
        };
        if let Some(listener) = self.0.upgrade() {
            listener.on_push(push);
        }
    }
}

impl LockStore for WrongServer {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        Box::pin(async move { Ok(self.told_to_asker(self.memory.acquire(command).await?)) })
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        Box::pin(async move {
            let answers = self.memory.heartbeat(batch, label, deadline).await?;
            Ok(answers
                .into_iter()
                .map(|answer| answer.map(|told| self.told_to_asker(told)))
                .collect())
        })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        if !self.makes(Mistake::ReservesTooLittle) {
            return self.memory.listen(runtime, listener);
        }
        let lengthening = Arc::new(Lengthening(listener));
        let listener: Arc<dyn Listener> = Arc::clone(&lengthening) as _;
        self.memory.listen(runtime, Arc::downgrade(&listener));
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(lengthening);
    }

    fn hold<'a>(&'a self, mut command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        Box::pin(async move {
            let Hold { name, id, fence, deadline, .. } = command;
            if self.makes(Mistake::ExtendsAnyFence) {
                command.fence = self.fence(name, id, fence, deadline).await;
            }
            if self.makes(Mistake::AddsHolds)
                && let Some(lease) = self.lease(name, deadline).await
            {
                let count = NonZeroU32::MIN.saturating_add(lease.holds);
                command.update = HoldUpdate { count, ..command.update };
            }
            self.memory.hold(command).await
        })
    }

    fn release<'a>(&'a self, mut command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        Box::pin(async move {
            let Release { name, id, fence, deadline, .. } = command;
            if self.makes(Mistake::ReleasesAnyFence) {
                command.fence = self.fence(name, id, fence, deadline).await;
            }
            Ok(match self.memory.release(command).await? {
                ReleaseAnswer::NextGranted(granted) => {
                    ReleaseAnswer::NextGranted(self.told(granted))
                }
                answer => answer,
            })
        })
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<RenewAnswer, StoreError>>> {
        Box::pin(async move {
            let mut batch = batch.to_vec();
            for one in &mut batch {
                if self.makes(Mistake::ExtendsAnyFence) {
                    one.fence = self.fence(&one.name, one.id, one.fence, deadline).await;
                }
                if self.makes(Mistake::RecreatesLeases)
                    && let Some(fence) = self.recreate(one, deadline).await
                {
                    one.fence = fence;
                }
            }
            self.memory.renew(&batch, deadline).await
        })
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        Box::pin(async move {
            let Withdraw { name, id, deadline } = command;
            let lease = self.lease(name, deadline).await;
            let has_lease = lease.as_ref().is_some_and(|held| held.id == id);
            if self.makes(Mistake::WithdrawsLeasesOnly) && !has_lease {
                return Ok(WithdrawAnswer { ended_grant: false });
            }
            if self.makes(Mistake::WithdrawsAnyPlace) {
                let waiters = lease.into_iter().flat_map(|lease| lease.waiters);
                let same_runtime = |other: &AcquisitionId| other.runtime() == id.runtime();
                for id in waiters.map(|waiter| waiter.id).filter(same_runtime) {
                    self.memory.withdraw(Withdraw { name, id, deadline }).await?;
                }
            }
            let answer = self.memory.withdraw(command).await;
            if self.makes(Mistake::LeavesNoMark) {
                self.memory.lose(name, Part::Marks);
            }
            answer
        })
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        self.memory.inspect(name, deadline)
    }

    fn scan<'a>(&'a self, command: Scan<'a>) -> StoreFuture<'a, ScanPage> {
        self.memory.scan(command)
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        self.memory.force_release(command)
    }

    fn shard(&self, name: &LockName) -> usize {
        self.memory.shard(name)
    }
}
