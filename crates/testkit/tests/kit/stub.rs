use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Acks, AcquisitionId, FenceToken, Instant, LockName, LockStore, RuntimeId, RuntimeLabel,
    StoreError, Ttl,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Granted, Hold, HoldAnswer,
        Inspection, Listener, Push, Release, ReleaseAnswer, RenewAnswer, Renewal, Scan, ScanPage,
        StoreFuture, Waiter, Withdraw, WithdrawAnswer,
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
    let (name, label, watermark, keeps, wait) = (&name, &label, None, false, None);
    let command =
        Acquire { name, id, ttl, watermark, label, keeps, wait, acks: Acks::NONE, deadline };
    store.acquire(command).await
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

/// An answer that is there at once.
fn now<'a, T: Send + 'a>(answer: T) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(Ok(answer)))
}

impl LockStore for StubStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        Box::pin(async move {
            let mut holders = self.holders.lock().unwrap();
            let holder = *holders.entry(command.name.clone()).or_insert(command.id);
            if holder != command.id {
                return Ok(BUSY);
            }
            let token = fence(self.tokens.fetch_add(1, Ordering::Relaxed) + 1);
            let (first, last) = (token, token);
            let (contended, regressed) = (false, false);
            let granted = Granted { first, last, remaining: REMAINING, contended, regressed };
            Ok(AcquireAnswer::Granted(granted))
        })
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        _: &'a RuntimeLabel,
        _: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        now(batch.iter().map(|_| Ok(BUSY)).collect())
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.listeners.lock().unwrap().insert(runtime, listener);
        self.push(runtime, Push::Listening);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        now(if self.holds(command.name, command.id) {
            HoldAnswer::Held { remaining: REMAINING }
        } else {
            HoldAnswer::Gone
        })
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        Box::pin(async move {
            let ended = self.end(command.name, command.id);
            Ok(if ended { ReleaseAnswer::Released } else { ReleaseAnswer::Gone })
        })
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        _deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<RenewAnswer, StoreError>>> {
        let renewed = RenewAnswer::Renewed { remaining: REMAINING };
        now(batch.iter().map(|_| Ok(renewed.clone())).collect())
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        Box::pin(async move {
            let ended_grant = self.end(command.name, command.id);
            Ok(WithdrawAnswer { ended_grant })
        })
    }

    fn inspect<'a>(&'a self, _name: &'a LockName, _: Instant) -> StoreFuture<'a, Inspection> {
        now(Inspection::Free { last_fence: None })
    }

    fn scan<'a>(&'a self, _: Scan<'a>) -> StoreFuture<'a, ScanPage> {
        now(ScanPage { names: Vec::new(), failed: None, next: None })
    }

    fn force_release<'a>(&'a self, _: ForceRelease<'a>) -> StoreFuture<'a, ForceReleaseAnswer> {
        now(ForceReleaseAnswer::Changed)
    }
}
