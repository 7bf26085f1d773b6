use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_core::{Entropy, RuntimeId, Secret};

/// Identities and jitter that follow from a seed alone.
///
/// Bits and identities come from two sequences, so that drawing more of one does not change the
/// other. Two entropies of the same seed draw the same identities: give each runtime of a test a
/// seed of its own, or all of them the same entropy.
#[derive(Debug)]
pub struct SeededEntropy {
    seed: u64,
    bits: AtomicU64,
    ids: AtomicU64,
}

impl SeededEntropy {
    /// Begins both sequences of `seed`.
    pub fn new(seed: u64) -> Self {
        let bits = split_mix(seed);
        let ids = split_mix(seed ^ 0x6c65_6173_6568_6f6c);
        Self { seed, bits: AtomicU64::new(bits), ids: AtomicU64::new(ids) }
    }

    /// The seed, to be printed with a failure.
    pub fn seed(&self) -> u64 {
        self.seed
    }
}

impl Entropy for SeededEntropy {
    fn bits(&self) -> u64 {
        next(&self.bits)
    }

    fn runtime_id(&self) -> RuntimeId {
        // One step of the sequence per identity, so that threads cannot tear one apart.
        let state = next(&self.ids);
        let uuid = u128::from(state) << 64 | u128::from(split_mix(!state));
        RuntimeId::new(uuid::Builder::from_random_bytes(uuid.to_be_bytes()).into_uuid())
    }

    fn secret(&self) -> Secret {
        // Of the seed alone: it moves neither sequence.
        Secret::new([split_mix(self.seed ^ 0x7365_6372), split_mix(self.seed ^ 0x7365_6374)])
    }
}

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn next(state: &AtomicU64) -> u64 {
    split_mix(state.fetch_add(GOLDEN_GAMMA, Ordering::Relaxed).wrapping_add(GOLDEN_GAMMA))
}

/// The output function of `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014).
fn split_mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_replays() {
        let (one, two) = (SeededEntropy::new(7), SeededEntropy::new(7));
        let ids: Vec<_> = (0..100).map(|_| one.runtime_id()).collect();
        for id in &ids {
            // More bits drawn here must not move the identities there.
            let _ = two.bits();
            assert_eq!(two.runtime_id(), *id);
        }
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 100);
        assert_ne!(SeededEntropy::new(8).runtime_id(), ids[0]);
        assert_eq!(ids[0].uuid().get_version_num(), 4);
    }

    #[test]
    fn bits_are_spread() {
        let entropy = SeededEntropy::new(0);
        let high = (0..1000).filter(|_| entropy.fraction() >= 0.5).count();
        assert!((400..600).contains(&high), "{high} of 1000");
    }
}
