#![expect(clippy::disallowed_methods, reason = "the one file that draws identities and jitter")]

use std::{cell::Cell, fmt};

use uuid::Uuid;

use crate::types::RuntimeId;

/// A source of identities and jitter: the only randomness in Leasehold.
pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    /// 64 random bits, for jitter.
    fn bits(&self) -> u64;

    /// An identity for a new runtime, never drawn before.
    fn runtime_id(&self) -> RuntimeId;

    /// A fraction in `[0, 1)`, for jitter.
    fn fraction(&self) -> f64 {
        // 32 bits are exact in a double, and fine enough for jitter.
        let [.., a, b, c, d] = self.bits().to_be_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / (f64::from(u32::MAX) + 1.0)
    }
}

/// The operating system's randomness for identities, and for jitter a generator in each thread: a
/// shared one would be fought for.
#[derive(Debug, Default)]
pub struct SystemEntropy {
    _private: (),
}

thread_local! {
    static JITTER: Cell<u64> = Cell::new(Uuid::new_v4().as_u64_pair().0);
}

impl SystemEntropy {
    /// The randomness of this system.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Entropy for SystemEntropy {
    fn bits(&self) -> u64 {
        let state = JITTER.get().wrapping_add(GOLDEN_GAMMA);
        JITTER.set(state);
        split_mix(state)
    }

    fn runtime_id(&self) -> RuntimeId {
        RuntimeId::new(Uuid::new_v4())
    }
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014).
fn split_mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_cover_the_unit_interval() {
        let entropy = SystemEntropy::new();
        let (mut low, mut high) = (false, false);
        for _ in 0..1000 {
            let fraction = entropy.fraction();
            assert!((0.0..1.0).contains(&fraction));
            low |= fraction < 0.25;
            high |= fraction > 0.75;
        }
        assert!(low && high);
        assert_ne!(entropy.runtime_id(), entropy.runtime_id());
    }
}
