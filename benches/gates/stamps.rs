use leasehold::{AcquisitionId, Fence, RuntimeId, Stamp};
use uuid::Uuid;

/// The stamp of the lease that a task holds from the beginning to the end.
pub(crate) fn of(task: usize) -> Stamp {
    let number = 1 + task as u64;
    let fence = Fence::try_from(number).expect("a small number");
    Stamp::new(fence, AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), number))
}
