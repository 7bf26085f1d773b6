use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, LockStore, Mode, Replication, RuntimeId, RuntimeLabel,
    StoreError, Ttl,
    store::{Acquire, AcquireAnswer, Ask},
};
use uuid::Uuid;

pub(crate) fn id(number: u64) -> AcquisitionId {
    AcquisitionId::new(RuntimeId::new(Uuid::from_u128(1)), number)
}

pub(crate) fn fence(token: u64) -> Fence {
    Fence::try_from(token).unwrap()
}

/// Sends an acquire that expects its answer by `deadline`.
pub(crate) async fn acquire(
    store: &dyn LockStore,
    number: u64,
    deadline: Instant,
) -> Result<AcquireAnswer, StoreError> {
    let (name, label) = (LockName::new("a").unwrap(), RuntimeLabel::new("stub"));
    let (id, mode, ttl) = (id(number), Mode::Write, Ttl::default());
    let (watermark, keeps, wait, acks) = (None, false, None, Replication::NONE);
    let command = Acquire { name, id, mode, ttl, watermark, label, keeps, wait, acks };
    store.ask(command, deadline).await
}
