//! What the unit tests share.

use leasehold_core::{AcquisitionId, FenceToken, RuntimeId, Stamp};
use uuid::Uuid;

/// The stamp of lease `lease` with a fence.
pub(crate) fn stamp(fence: u64, lease: u64) -> Stamp {
    let lease = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), lease);
    Stamp::new(FenceToken::try_from(fence).unwrap(), lease)
}
