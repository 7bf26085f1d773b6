use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, LockStore, MemoryStore, Mode, RuntimeId, RuntimeLabel,
    seam::Part,
    store::{
        Acquire, AcquireAnswer, Ask, Command, Granted, Hold, Inspection, LeaseRecord, Listener,
        Push, Release, ReleaseAnswer, Renewal, Renewals, Reply, StoreFuture, Withdraw,
        WithdrawAnswer,
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
    /// A reader joins others, whatever fence it has seen.
    ForgetsWhatReadersSaw,
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
        named: Fence,
        deadline: Instant,
    ) -> Fence {
        let lease = self.lease(name, deadline).await.filter(|lease| lease.id == id);
        lease.map_or(named, |lease| lease.fence)
    }

    /// The command that a right server would have to be sent to make the mistake; a reply if it runs
    /// nothing.
    async fn misread(&self, command: Command, deadline: Instant) -> Result<Command, Reply> {
        Ok(match command {
            Command::Hold(hold) => Command::Hold(self.misread_hold(hold, deadline).await),
            Command::Release(mut release) if self.makes(Mistake::ReleasesAnyFence) => {
                let Release { ref name, id, fence, .. } = release;
                release.fence = self.fence(name, id, fence, deadline).await;
                Command::Release(release)
            }
            Command::Renew(Renewals { mut batch }) => {
                for one in &mut batch {
                    self.misread_renewal(one, deadline).await;
                }
                Command::Renew(Renewals { batch })
            }
            Command::Acquire(mut acquire) if self.makes(Mistake::ForgetsWhatReadersSaw) => {
                acquire.watermark = None;
                Command::Acquire(acquire)
            }
            Command::Withdraw(withdraw) => return self.misread_withdraw(withdraw, deadline).await,
            other => other,
        })
    }

    async fn misread_hold(&self, mut hold: Hold, deadline: Instant) -> Hold {
        if self.makes(Mistake::ExtendsAnyFence) {
            hold.fence = self.fence(&hold.name, hold.id, hold.fence, deadline).await;
        }
        if self.makes(Mistake::AddsHolds)
            && let Some(lease) = self.lease(&hold.name, deadline).await
        {
            hold.update.count = NonZeroU32::MIN.saturating_add(lease.holds);
        }
        hold
    }

    async fn misread_renewal(&self, renewal: &mut Renewal, deadline: Instant) {
        if self.makes(Mistake::ExtendsAnyFence) {
            let Renewal { ref name, id, fence, .. } = *renewal;
            renewal.fence = self.fence(name, id, fence, deadline).await;
        }
        if self.makes(Mistake::RecreatesLeases)
            && let Some(fence) = self.recreate(renewal, deadline).await
        {
            renewal.fence = fence;
        }
    }

    async fn misread_withdraw(
        &self,
        withdraw: Withdraw,
        deadline: Instant,
    ) -> Result<Command, Reply> {
        let Withdraw { ref name, id } = withdraw;
        let lease = self.lease(name, deadline).await;
        let has_lease = lease.as_ref().is_some_and(|held| held.id == id);
        if self.makes(Mistake::WithdrawsLeasesOnly) && !has_lease {
            return Err(Reply::Withdraw(WithdrawAnswer { ended_grant: false }));
        }
        if self.makes(Mistake::WithdrawsAnyPlace) {
            let waiters = lease.into_iter().flat_map(|lease| lease.waiters);
            let same_runtime = |other: &AcquisitionId| other.runtime() == id.runtime();
            for id in waiters.map(|waiter| waiter.id).filter(same_runtime) {
                let other = Withdraw { name: name.clone(), id };
                let _ = self.memory.ask(other, deadline).await;
            }
        }
        if self.makes(Mistake::LeavesNoMark) {
            let reply = self.memory.ask(withdraw.clone(), deadline).await;
            self.memory.lose(name, Part::Marks);
            return Err(reply.expect("memory does not fail").into());
        }
        Ok(withdraw.into())
    }

    /// The reply with longer blocks, if that is the mistake.
    fn told(&self, reply: Reply) -> Reply {
        if !self.makes(Mistake::ReservesTooLittle) {
            return reply;
        }
        let acquired = |answer| match answer {
            AcquireAnswer::Granted(granted) => AcquireAnswer::Granted(lengthened(granted)),
            other => other,
        };
        match reply {
            Reply::Acquire(answer) => Reply::Acquire(acquired(answer)),
            Reply::Heartbeat(answers) => {
                Reply::Heartbeat(answers.into_iter().map(|answer| answer.map(acquired)).collect())
            }
            Reply::Release(ReleaseAnswer::NextGranted(granted)) => {
                Reply::Release(ReleaseAnswer::NextGranted(lengthened(granted)))
            }
            other => other,
        }
    }

    /// Grants a free lock anew to an acquisition whose lease is gone; returns the fence of the new
    /// lease.
    async fn recreate(&self, renewal: &Renewal, deadline: Instant) -> Option<Fence> {
        if self.lease(&renewal.name, deadline).await.is_some() {
            return None;
        }
        let Renewal { name, id, fence, ttl, acks } = renewal.clone();
        let (mode, watermark, keeps, wait) = (Mode::Write, Some(fence), false, None);
        let label = RuntimeLabel::new("re-created");
        let acquire = Acquire { name, id, mode, ttl, watermark, label, keeps, wait, acks };
        match self.memory.ask(acquire, deadline).await {
            Ok(AcquireAnswer::Granted(granted)) => Some(granted.first),
            _ => None,
        }
    }
}

/// The same grant with 1024 tokens more than the counter knows.
fn lengthened(mut granted: Granted) -> Granted {
    granted.last = Fence::try_from(granted.last.get() + 1024).unwrap_or(granted.last);
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
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        Box::pin(async move {
            match self.misread(command, deadline).await {
                Ok(command) => Ok(self.told(self.memory.send(command, deadline).await?)),
                Err(reply) => Ok(reply),
            }
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

    fn shard(&self, name: &LockName) -> usize {
        self.memory.shard(name)
    }
}
