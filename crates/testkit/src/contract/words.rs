use std::{num::NonZeroU64, time::Duration};

use leasehold_core::{AcquisitionId, RuntimeId, Ttl};
use uuid::Uuid;

/// An id with a word, as runtimes make them; words do not grow with numbers.
pub(super) fn worded(runtime: RuntimeId, number: u64) -> AcquisitionId {
    let word =
        NonZeroU64::new(!number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).expect("a small number");
    AcquisitionId::new(runtime, number).with_word(word)
}

/// An acquisition of the first runtime.
pub fn alice(number: u64) -> AcquisitionId {
    worded(RuntimeId::new(Uuid::from_u128(0xa11ce)), number)
}

/// An acquisition of the second runtime.
pub fn bob(number: u64) -> AcquisitionId {
    worded(RuntimeId::new(Uuid::from_u128(0xb0b)), number)
}

/// An acquisition of the third runtime.
pub fn carol(number: u64) -> AcquisitionId {
    worded(RuntimeId::new(Uuid::from_u128(0xca201)), number)
}

/// So many seconds.
pub fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A ttl of so many seconds.
///
/// # Panics
///
/// Panics outside of the range of a [`Ttl`].
pub fn ttl(seconds: u64) -> Ttl {
    Ttl::new(secs(seconds)).expect("the case asks for a ttl that exists")
}
