use std::time::Duration;

use leasehold_core::Entropy;

use crate::SeededEntropy;

/// Decisions that follow from a seed alone, without floating point, the same on every machine.
#[derive(Debug)]
pub struct Dice(SeededEntropy);

/// A probability in millionths.
pub type Ppm = u64;

impl Dice {
    /// The decisions of a seed.
    pub fn new(seed: u64) -> Self {
        Self(SeededEntropy::new(seed))
    }

    /// 64 random bits.
    pub fn bits(&self) -> u64 {
        self.0.bits()
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&self, bound: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// A number from `least` to `most`, both included.
    pub fn from_to(&self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// Whether something of this probability happens.
    pub fn chance(&self, ppm: Ppm) -> bool {
        ppm > 0 && self.below(1_000_000) < ppm
    }

    /// One of some things.
    ///
    /// # Panics
    ///
    /// Panics if there is none.
    pub fn pick<T: Copy>(&self, of: &[T]) -> T {
        let index = usize::try_from(self.below(of.len() as u64)).unwrap_or(0);
        of[index]
    }

    /// A time from `least` to `most`, each as likely as another.
    pub fn time(&self, least: Duration, most: Duration) -> Duration {
        nanos(self.from_to(as_nanos(least), as_nanos(most).max(as_nanos(least))))
    }

    /// A time from `least` to about `most`, each order of magnitude as likely as another.
    pub fn spread(&self, least: Duration, most: Duration) -> Duration {
        let least = as_nanos(least).max(1);
        let ratio = (as_nanos(most) / least).max(1);
        let doublings = u64::from(ratio.ilog2());
        let base = least << self.from_to(0, doublings);
        nanos(base + self.below(base)).min(most)
    }
}

fn as_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_their_range() {
        let dice = Dice::new(3);
        let (least, most) = (Duration::from_micros(50), Duration::from_millis(2));
        let mut short = 0;
        for _ in 0..1000 {
            assert!((least..=most).contains(&dice.time(least, most)));
            let spread = dice.spread(least, most);
            assert!((least..=most).contains(&spread), "{spread:?}");
            short += usize::from(spread < Duration::from_micros(320));
            assert!((3..=5).contains(&dice.from_to(3, 5)));
        }
        assert!((350..650).contains(&short), "{short} of 1000 below the middle magnitude");
        assert!(!dice.chance(0) && dice.chance(1_000_000));
    }
}
