use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, LockName, LockStore, Replication, RuntimeId, RuntimeLabel,
    StoreError, Ttl,
    store::{
        Acquire, AcquireAnswer, Ask, Command, ForceReleaseAnswer, Granted, Heartbeats, HoldAnswer,
        Inspect, Inspection, Listener, Push, Release, ReleaseAnswer, RenewAnswer, Renewals, Reply,
        ScanPage, StoreFuture, Withdraw, WithdrawAnswer,
    },
};
use uuid::Uuid;

/// A store that knows who holds what and nothing of time; enough to see what reached it.
#[derive(Debug, Default)]
pub(crate) struct StubStore {
    holders: Mutex<BTreeMap<LockName, AcquisitionId>>,
    tokens: AtomicU64,
    listeners: Mutex<BTreeMap<RuntimeId, Weak<dyn Listener>>>,
}

const REMAINING: Duration = Duration::from_secs(30);

const BUSY: AcquireAnswer = AcquireAnswer::Busy { remaining: REMAINING, keeps: false };

pub(crate) fn id(number: u64) -> AcquisitionId {
    AcquisitionId::new(RuntimeId::new(Uuid::from_u128(1)), number)
}

pub(crate) fn fence(token: u64) -> FenceToken {
    FenceToken::try_from(token).unwrap()
}

/// Sends an acquire that expects its answer by `deadline`.
pub(crate) async fn acquire(
    store: &dyn LockStore,
    number: u64,
    deadline: Instant,
) -> Result<AcquireAnswer, StoreError> {
    let (name, label) = (LockName::new("a").unwrap(), RuntimeLabel::new("stub"));
    let (id, ttl) = (id(number), Ttl::default());
    let (watermark, keeps, wait, acks) = (None, false, None, Replication::NONE);
    let command = Acquire { name, id, ttl, watermark, label, keeps, wait, acks };
    store.ask(command, deadline).await
}

impl StubStore {
    fn holds(&self, name: &LockName, id: AcquisitionId) -> bool {
        self.holders.lock().unwrap().get(name) == Some(&id)
    }

    /// Tells the listener of a runtime something, if it has one.
    pub(crate) fn push(&self, runtime: RuntimeId, push: Push) {
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = listeners.get(&runtime).and_then(Weak::upgrade);
        drop(listeners);
        if let Some(listener) = listener {
            listener.on_push(push);
        }
    }

    fn end(&self, name: &LockName, id: AcquisitionId) -> bool {
        let held = self.holds(name, id);
        if held {
            self.holders.lock().unwrap().remove(name);
        }
        held
    }
}

impl LockStore for StubStore {
    fn send(&self, command: Command, _: Instant) -> StoreFuture<'_, Reply> {
        Box::pin(std::future::ready(Ok(self.reply(command))))
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.listeners.lock().unwrap().insert(runtime, listener);
        self.push(runtime, Push::Listening);
    }
}

impl StubStore {
    fn reply(&self, command: Command) -> Reply {
        match command {
            Command::Acquire(acquire) => self.acquire(acquire).into(),
            Command::Heartbeat(Heartbeats { batch, .. }) => {
                Reply::Heartbeat(batch.iter().map(|_| Ok(BUSY)).collect())
            }
            Command::Hold(hold) if self.holds(&hold.name, hold.id) => {
                HoldAnswer::Held { remaining: REMAINING }.into()
            }
            Command::Hold(_) => HoldAnswer::Gone.into(),
            Command::Release(Release { name, id, .. }) => {
                let ended = self.end(&name, id);
                if ended { ReleaseAnswer::Released } else { ReleaseAnswer::Gone }.into()
            }
            Command::Renew(Renewals { batch }) => {
                let renewed = |_| Ok(RenewAnswer::Renewed { remaining: REMAINING });
                Reply::Renew(batch.iter().map(renewed).collect())
            }
            Command::Withdraw(Withdraw { name, id }) => {
                WithdrawAnswer { ended_grant: self.end(&name, id) }.into()
            }
            Command::Inspect(Inspect { names }) => {
                let free = |_| Ok(Inspection::Free { last_fence: None });
                Reply::Inspect(names.iter().map(free).collect())
            }
            Command::Scan(_) => ScanPage { names: Vec::new(), failed: None, next: None }.into(),
            Command::ForceRelease(_) => ForceReleaseAnswer::Changed.into(),
        }
    }

    fn acquire(&self, acquire: Acquire) -> AcquireAnswer {
        let mut holders = self.holders.lock().unwrap();
        let holder = *holders.entry(acquire.name).or_insert(acquire.id);
        if holder != acquire.id {
            return BUSY;
        }
        let token = fence(self.tokens.fetch_add(1, Ordering::Relaxed) + 1);
        let (first, last) = (token, token);
        let (contended, regressed) = (false, false);
        AcquireAnswer::Granted(Granted { first, last, remaining: REMAINING, contended, regressed })
    }
}
