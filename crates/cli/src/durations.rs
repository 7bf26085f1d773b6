//! The durations that are no options, each with its reason.

use std::{ops::RangeInclusive, time::Duration};

/// The pause between two looks at all locks, and the longest between two drawings of the bar of a bench. A
/// guard sleeps no longer, since timers stand still while the machine sleeps, and is replaced no more often.
pub(crate) const EVERY: Duration = Duration::from_secs(1);
/// How soon the end of a group is noticed that was told to end, and how soon at last, after SIGKILL: a
/// look reads the list of all processes.
pub(crate) const GROUP_LOOKS: RangeInclusive<Duration> =
    Duration::from_millis(20)..=Duration::from_millis(500);
/// For how long a process that got SIGKILL may take to end: one that waits for a disk ends later.
pub(crate) const DEATH: Duration = Duration::from_secs(5);
/// No claim window is longer.
pub(crate) const LONGEST_CLAIM: Duration = Duration::from_secs(3);
/// The grace of a lease, unless one was asked for, or less fits into it.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// The shortest time between two looks at a lease: until its first renewal confirms it, and before its
/// grace may begin.
pub(crate) const LEASE_LOOK: Duration = Duration::from_millis(5);
/// The run notices the beginning of the grace at the same moment as its guard: it goes first.
pub(crate) const HEAD_START: Duration = Duration::from_millis(50);
/// How long a command that has done its work waits for the server to confirm it. Where less time is
/// left, the server has at least a twentieth of that to hear that further locks end.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(2);
/// The shortest time in which the parts of a bench measure anything.
pub(crate) const SHORTEST_BENCH: Duration = Duration::from_millis(500);
/// A run that waits for so long tells why: most waits are shorter.
pub(crate) const FIRST_WORD: Duration = Duration::from_secs(2);
/// How often a run that waits looks whether the reason has changed.
pub(crate) const NEXT_WORD: Duration = Duration::from_secs(10);
