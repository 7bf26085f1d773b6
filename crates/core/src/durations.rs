//! The durations that are no settings, each with its reason.

use std::time::Duration;

/// The end of an outage shorter than this is not logged at once, but with the next summary.
pub(crate) const BLIP: Duration = Duration::from_secs(1);
/// What all answers of one examined server may take beside two command timeouts: the questions are
/// many, and the network may be slow.
pub(crate) const EXAMINATION: Duration = Duration::from_secs(5);
