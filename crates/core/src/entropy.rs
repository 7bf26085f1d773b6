#![expect(clippy::disallowed_methods, reason = "the one file that draws identities and jitter")]

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
};

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

/// The operating system's randomness for identities, and for jitter the keys of the standard
/// library's hashers, which each thread draws for itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bits(&self) -> u64 {
        RandomState::new().hash_one(())
    }

    fn runtime_id(&self) -> RuntimeId {
        RuntimeId::new(Uuid::new_v4())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_cover_the_unit_interval() {
        let entropy = SystemEntropy;
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
