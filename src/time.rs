//! Time and chance: the clock and the source of random numbers that tests replace.

pub use leasehold_core::{Clock, Entropy, Instant, Secret, Sleep, SystemClock, SystemEntropy};
