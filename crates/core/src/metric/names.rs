//! The names of all metrics.

/// Counter of acquire calls by `class` and `outcome`.
pub const ACQUIRE_TOTAL: &str = "leasehold_acquire_total";
/// Histogram of the time from asking to holding, in seconds, by `class`.
pub const ACQUIRE_WAIT_SECONDS: &str = "leasehold_acquire_wait_seconds";
/// Counter of acquire calls that found the lock taken, waiting or not, by `class`; counted at their
/// end, as [`ACQUIRE_TOTAL`] is.
pub const CONTENDED_TOTAL: &str = "leasehold_contended_total";
/// Gauge of acquire calls that wait, by `class`.
pub const WAITERS: &str = "leasehold_waiters";
/// Gauge of the longest time that an acquire call has been waiting by now, in seconds, by `class`;
/// zero while none waits.
pub const LONGEST_WAIT_SECONDS: &str = "leasehold_longest_wait_seconds";
/// Gauge of leases held by this process, by `class`.
pub const HELD: &str = "leasehold_held";
/// Gauge of the longest time that a lease has been held by now, in seconds, by `class`; zero while
/// none is held.
pub const OLDEST_HOLD_SECONDS: &str = "leasehold_oldest_hold_seconds";
/// Histogram of the time a lease was held, in seconds, by `class` and `end`.
pub const HOLD_SECONDS: &str = "leasehold_hold_seconds";
/// Counter of the times a waiter was woken because it was its turn, by `class` and `source`.
pub const WAKEUPS_TOTAL: &str = "leasehold_wakeups_total";
/// Histogram of how many tasks and runtimes stood before an acquire call that had to wait, by
/// `class`.
pub const QUEUE_POSITION: &str = "leasehold_queue_position";
/// Histogram of the time from offering the lock to a waiter until it took it, in seconds, by
/// `class`.
pub const HANDOVER_SECONDS: &str = "leasehold_handover_seconds";
/// Histogram of how many leases a turn of this process had, by `class`.
pub const TURN_LEASES: &str = "leasehold_turn_leases";
/// Counter of renewals by `class` and `outcome`.
pub const RENEWALS_TOTAL: &str = "leasehold_renewals_total";
/// Histogram of a renewal command's round trip, in seconds.
pub const RENEWAL_SECONDS: &str = "leasehold_renewal_seconds";
/// Histogram of how late renewals were sent, in seconds: a starved runtime shows here.
pub const RENEWAL_LAG_SECONDS: &str = "leasehold_renewal_lag_seconds";
/// Histogram of the belief that was left when a renewal was confirmed, in seconds, by `class`.
///
/// Not of the first renewal of a grant that was told for less than half its ttl, as a push is: it
/// has little left from the beginning.
pub const RENEWAL_MARGIN_SECONDS: &str = "leasehold_renewal_margin_seconds";
/// Histogram of the same as a share of the lease's own ttl, from 0 to 1, by `class`.
pub const RENEWAL_MARGIN_RATIO: &str = "leasehold_renewal_margin_ratio";
/// Counter of lost leases by `class` and `reason`.
pub const LOST_TOTAL: &str = "leasehold_lost_total";
/// Counter of releases by `class`, `outcome` and `via`.
pub const RELEASE_TOTAL: &str = "leasehold_release_total";
/// Counter of writes that a gate refused for their stale fence, by `gate`.
pub const FENCE_REJECTED_TOTAL: &str = "leasehold_fence_rejected_total";
/// Counter of grants at which the server's fence counter was behind what this process had seen.
pub const FENCE_REGRESSION_TOTAL: &str = "leasehold_fence_regression_total";
/// Gauge of how long the server has been out of reach by now, in seconds; zero when it is not.
pub const STORE_UNREACHABLE_SECONDS: &str = "leasehold_store_unreachable_seconds";
/// Counter of failed store commands by `kind`.
pub const STORE_ERRORS_TOTAL: &str = "leasehold_store_errors_total";
