#![expect(clippy::disallowed_methods, reason = "the one file that draws identities and jitter")]

use std::{
    fmt,
    hash::{BuildHasher, Hasher, RandomState},
    num::NonZeroU64,
};

use uuid::Uuid;

use crate::types::{AcquisitionId, LockName, RuntimeId};

/// A source of identities and jitter: the only randomness in Leasehold.
pub trait Entropy: fmt::Debug + Send + Sync + 'static {
    /// 64 random bits, for jitter.
    fn bits(&self) -> u64;

    /// An identity for a new runtime, never drawn before.
    fn runtime_id(&self) -> RuntimeId;

    /// The secret of a new runtime: drawn once, told to nobody, and never guessed.
    fn secret(&self) -> Secret;

    /// A fraction in `[0, 1)`, for jitter.
    fn fraction(&self) -> f64 {
        // 32 bits are exact in a double, and fine enough for jitter.
        let [.., a, b, c, d] = self.bits().to_be_bytes();
        f64::from(u32::from_be_bytes([a, b, c, d])) / (f64::from(u32::MAX) + 1.0)
    }
}

/// The keys by which a runtime makes the words of its acquisitions, and recognizes them.
///
/// A word follows from the lock and the number of the acquisition, by a hash with these keys, so no
/// word need be kept, and that of one lock proves nothing for another.
#[derive(Clone, Copy)]
// ADR 0026
pub struct Secret([u64; 2]);

impl Secret {
    /// Makes a secret of 128 random bits.
    pub fn new(keys: [u64; 2]) -> Self {
        Self(keys)
    }

    /// The id with its word, as an acquisition of this lock has it in the store.
    pub fn sign(&self, lock: &LockName, id: AcquisitionId) -> AcquisitionId {
        id.with_word(self.word(lock, id.number()))
    }

    /// Whether the word of an id is that of an acquisition of this lock.
    pub fn proves(&self, lock: &LockName, id: AcquisitionId) -> bool {
        id.word() == Some(self.word(lock, id.number()))
    }

    #[expect(
        deprecated,
        reason = "the standard library has SipHash with keys of one's own under no other name"
    )]
    fn word(self, lock: &LockName, number: u64) -> NonZeroU64 {
        let Self([first, second]) = self;
        let mut hasher = std::hash::SipHasher::new_with_keys(first, second);
        hasher.write_u64(number);
        hasher.write(lock.as_str().as_bytes());
        NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MAX)
    }
}

/// Without the keys.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The usual source: identities and secrets come from the operating system, jitter from
/// [`RandomState`], whose keys each thread draws for itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bits(&self) -> u64 {
        RandomState::new().hash_one(())
    }

    fn runtime_id(&self) -> RuntimeId {
        RuntimeId::new(Uuid::new_v4())
    }

    fn secret(&self) -> Secret {
        // Six bits of a random UUID are fixed; a key takes its bits from two of them.
        let (first, second) = (Uuid::new_v4().as_u64_pair(), Uuid::new_v4().as_u64_pair());
        Secret([first.0 ^ second.1.rotate_left(32), first.1 ^ second.0.rotate_left(32)])
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

    #[test]
    fn a_word_proves_one_acquisition_of_one_lock_of_one_runtime() {
        let (ours, others) = (SystemEntropy.secret(), SystemEntropy.secret());
        let (a, b) = (LockName::new("a").unwrap(), LockName::new("b").unwrap());
        let runtime = SystemEntropy.runtime_id();
        let plain = AcquisitionId::new(runtime, 7);
        let id = ours.sign(&a, plain);
        assert!(ours.proves(&a, id));
        assert!(!ours.proves(&a, plain) && !ours.proves(&b, id) && !others.proves(&a, id));
        let next = AcquisitionId::new(runtime, 8).with_word(id.word().unwrap());
        assert!(!ours.proves(&a, next));
        assert_eq!(format!("{ours:?}"), "Secret(…)");
    }
}
