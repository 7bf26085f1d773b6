//! The durations that are no settings, each with its reason. A range holds pauses that grow from its
//! start to its end.

use std::{ops::RangeInclusive, time::Duration};

const fn millis(shortest: u64, longest: u64) -> RangeInclusive<Duration> {
    RangeInclusive::new(Duration::from_millis(shortest), Duration::from_millis(longest))
}

/// The longest time for which a sleeping task trusts a timer: it stands still while the machine sleeps. A
/// process that hears nothing for so long, although it would have asked, stands still itself.
pub const LONGEST_NAP: Duration = Duration::from_secs(5);
/// A clock of tokio that is paused shows a time from before the first look at it, but by less than this.
pub(crate) const AN_HOUR: Duration = Duration::from_secs(3600);
/// For how long a thread may take its process for the same. No fork is that fast: the fastest take
/// some 50 µs. It spares most of the calls to the system, which take up to 0.3 µs.
pub(crate) const SAME_PROCESS: Duration = Duration::from_micros(10);

/// When a client of a service may try again that met another holder, or another transaction: about as
/// long as a person waits.
pub const RETRY_SOON: Duration = Duration::from_secs(1);
/// The same in an outage: a failover takes seconds, and many clients come back at once.
pub const RETRY_LATER: Duration = Duration::from_secs(5);

/// How long a store remembers a withdrawn acquisition.
pub const WITHDRAWAL_MARK: Duration = Duration::from_secs(30);
/// How much longer than necessary a queue is kept in memory, so that its end is rarely moved.
pub(crate) const QUEUE_SPARE: Duration = Duration::from_secs(60);
/// How long acknowledgements may take; they are counted in steps of the shortest time.
pub(crate) const ACKNOWLEDGEMENTS: RangeInclusive<Duration> = millis(10, 10_000);

/// A shorter silence ends no connection, so that a slow answer does not cost one; and an answer that
/// would cost one is awaited for at least so long.
pub const SHORTEST_SILENCE: Duration = Duration::from_millis(100);
/// After how long without an answer the server is asked whether it is there, once somebody has asked how
/// it is: an outage shows within 5 s, with time to spare.
pub const LOOK: Duration = Duration::from_secs(2);
/// What comes later than this after its time shows that the process stood still, as does a tokio runtime on
/// which nothing runs for so long. A healthy server pauses for less, too, as when it forks: a longer silence
/// shows in the health of a runtime.
pub const STOOD_STILL: Duration = Duration::from_millis(500);
