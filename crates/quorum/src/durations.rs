//! The durations that are no settings, each with its reason. A range holds pauses that grow from its
//! start to its end.

use std::{ops::RangeInclusive, time::Duration};

const fn millis(shortest: u64, longest: u64) -> RangeInclusive<Duration> {
    RangeInclusive::new(Duration::from_millis(shortest), Duration::from_millis(longest))
}

/// How long an acquisition steps back that met others at the nodes of a quorum.
pub(crate) const STEPS_BACK: RangeInclusive<Duration> = millis(2, 20);
/// The pauses before a node of a quorum is told again.
pub(crate) const REPEATS: RangeInclusive<Duration> = millis(50, 2_000);
/// For how long a node is asked last after failures in a row.
pub(crate) const RESTS: RangeInclusive<Duration> = millis(100, 3_000);
/// How much longer than usual a node may take, and how long at most, before another one is asked in its
/// place.
pub(crate) const HEDGES: RangeInclusive<Duration> = millis(4, 100);
