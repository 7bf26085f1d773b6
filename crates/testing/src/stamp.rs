use leasehold_core::{AcquisitionId, Fence, RuntimeId, Stamp};
use uuid::Uuid;

/// The stamp of a lease that was never acquired, for tests of a gate or of a storage.
///
/// Stamps with the same `lease` are those of one lease; a stamp with a smaller `fence` is stale.
///
/// # Panics
///
/// Panics if `fence` is not in `1 ..= 2^53−1`.
pub fn stamp(fence: u64, lease: u64) -> Stamp {
    let Ok(token) = Fence::try_from(fence) else {
        panic!("{fence} is not a fence: those are 1 to {}", Fence::MAX)
    };
    Stamp::new(token, AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), lease))
}
