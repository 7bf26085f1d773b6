//! The durations that are no settings, each with its reason.

use std::{ops::RangeInclusive, time::Duration};

/// The pauses before a release is repeated, and between two looks at the lock of a `once`.
pub(crate) const SHORT_PAUSES: RangeInclusive<Duration> =
    Duration::from_millis(2)..=Duration::from_millis(250);
/// Within this time the log has one line of messages that were dropped, one for each lock that a task
/// waits for which it may hold itself, and one for each whose `once` is not confirmed.
pub(crate) const LOG_PAUSE: Duration = Duration::from_secs(60);
/// After how long a call is told that it may wait for itself.
pub(crate) const SUSPICION: Duration = Duration::from_secs(1);

/// How long the look at the holder may take at the end of a wait.
pub(crate) const LAST_LOOK: Duration = Duration::from_millis(250);
/// How long is waited for what comes soon as a rule: the release of a lease that was recalled for a try,
/// a grant besides its wait for replicas, and the releases of a runtime that ends with its thread.
pub(crate) const MOMENT: Duration = Duration::from_millis(50);
/// For how long a withdrawal goes on after the ttl of what it withdraws.
pub(crate) const LATE: Duration = Duration::from_secs(3600);

/// The shortest pause between two commands about a place, and from one round of heartbeats to the next, so
/// that many names share one. A place is asked for again so soon after messages may have been lost: with a
/// round, these are the 50 ms that are promised.
pub(crate) const PLACE_PAUSE: Duration = Duration::from_millis(25);
/// How far ahead of its time a name is looked at when heartbeats are sent.
pub(crate) const AHEAD: Duration = Duration::from_millis(200);

/// For how long a turn goes on: until the start if no other runtime waited when it began, until the end
/// if one did. A turn that is not kept does not see runtimes that come later: a shorter limit lets them
/// wait for less.
pub(crate) const TURNS: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_millis(50);
/// With so much belief left any task may enter.
pub(crate) const ENOUGH: Duration = Duration::from_millis(500);
/// How much older a stamp may be than the last use of an idle turn: most uses change nothing then.
pub(crate) const STAMP: Duration = Duration::from_secs(1);
/// After how long seen fences are old, and forgotten after as long again.
pub(crate) const GENERATION: Duration = Duration::from_secs(600);
