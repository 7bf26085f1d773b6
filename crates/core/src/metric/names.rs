//! The names of all metrics.

use metrics::Unit;

/// What kind of metric a name is; a histogram has the upper bounds of its buckets.
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}

use Kind::{Counter, Gauge, Histogram};

/// Defines every metric once: its name with its documentation, its kind, unit and description.
macro_rules! metrics {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $kind:expr, $unit:ident, $meaning:literal;)+) => {
        $($(#[$doc])* pub const $id: &str = $name;)+

        /// Every metric: its name, kind, unit and description.
        pub(super) const ALL: &[(&str, Kind, Unit, &str)] = &[$(($name, $kind, Unit::$unit, $meaning),)+];
    };
}

metrics! {
    /// Counter of acquire calls by `class` and `outcome`.
    ACQUIRE_TOTAL = "leasehold_acquire_total", Counter, Count,
        "Acquire calls by outcome";
    /// Histogram of the time from asking to holding, in seconds, by `class`.
    ACQUIRE_WAIT_SECONDS = "leasehold_acquire_wait_seconds", Histogram(WAIT), Seconds,
        "Time from asking for a lock to holding it";
    /// Counter of acquire calls that found the lock taken, waiting or not, by `class`; counted at their
    /// end, as [`ACQUIRE_TOTAL`] is.
    CONTENDED_TOTAL = "leasehold_contended_total", Counter, Count,
        "Acquire calls that found the lock taken";
    /// Gauge of acquire calls that wait, by `class`.
    WAITERS = "leasehold_waiters", Gauge, Count,
        "Acquire calls that wait for a lock";
    /// Gauge of the longest time that an acquire call has been waiting by now, in seconds, by `class`;
    /// zero while none waits.
    LONGEST_WAIT_SECONDS = "leasehold_longest_wait_seconds", Gauge, Seconds,
        "Longest time that an acquire call has been waiting by now";
    /// Gauge of leases held by this process, by `class`.
    HELD = "leasehold_held", Gauge, Count,
        "Leases held by this process";
    /// Gauge of the longest time that a lease has been held by now, in seconds, by `class`; zero while
    /// none is held.
    OLDEST_HOLD_SECONDS = "leasehold_oldest_hold_seconds", Gauge, Seconds,
        "Longest time that a lease has been held by now";
    /// Histogram of the time a lease was held, in seconds, by `class` and `end`.
    HOLD_SECONDS = "leasehold_hold_seconds", Histogram(HOLD), Seconds,
        "Time a lease was held, by its end";
    /// Counter of the times a waiter was woken because it was its turn, by `class` and `source`.
    WAKEUPS_TOTAL = "leasehold_wakeups_total", Counter, Count,
        "Times a waiter was woken because it was its turn, by source";
    /// Histogram of how many tasks and runtimes stood before an acquire call that had to wait, by
    /// `class`.
    QUEUE_POSITION = "leasehold_queue_position", Histogram(POSITION), Count,
        "Tasks and runtimes before an acquire call that had to wait";
    /// Histogram of the time from offering the lock to a waiter until it took it, in seconds, by
    /// `class`.
    HANDOVER_SECONDS = "leasehold_handover_seconds", Histogram(HANDOVER), Seconds,
        "Time from offering the lock to a waiter until it took it";
    /// Histogram of how many leases a turn of this process had, by `class`.
    TURN_LEASES = "leasehold_turn_leases", Histogram(TURN), Count,
        "Leases of one turn of this process";
    /// Counter of renewals by `class` and `outcome`.
    RENEWALS_TOTAL = "leasehold_renewals_total", Counter, Count,
        "Renewals by outcome";
    /// Histogram of a renewal command's round trip, in seconds.
    RENEWAL_SECONDS = "leasehold_renewal_seconds", Histogram(RENEWAL), Seconds,
        "Round trip of a renewal command";
    /// Histogram of how late renewals were sent, in seconds: a starved runtime shows here.
    RENEWAL_LAG_SECONDS = "leasehold_renewal_lag_seconds", Histogram(RENEWAL), Seconds,
        "How late renewals were sent; a starved runtime shows here";
    /// Histogram of the belief that was left when a renewal was confirmed, in seconds, by `class`.
    ///
    /// Not of the first renewal of a grant that was told for less than half its ttl, as a push is: it
    /// has little left from the beginning.
    RENEWAL_MARGIN_SECONDS = "leasehold_renewal_margin_seconds", Histogram(RENEWAL), Seconds,
        "Belief that was left when a renewal was confirmed";
    /// Histogram of the same as a share of the lease's own ttl, from 0 to 1, by `class`.
    RENEWAL_MARGIN_RATIO = "leasehold_renewal_margin_ratio", Histogram(RATIO), Count,
        "Share of the ttl that was left when a renewal was confirmed";
    /// Counter of lost leases by `class` and `reason`.
    LOST_TOTAL = "leasehold_lost_total", Counter, Count,
        "Lost leases by reason";
    /// Counter of releases by `class`, `outcome` and `via`.
    RELEASE_TOTAL = "leasehold_release_total", Counter, Count,
        "Releases by outcome and way";
    /// Counter of writes that a gate refused for their stale fence, by `gate`.
    FENCE_REJECTED_TOTAL = "leasehold_fence_rejected_total", Counter, Count,
        "Writes that a gate refused for their stale fence";
    /// Counter of grants at which the server's fence counter was behind what this process had seen.
    FENCE_REGRESSION_TOTAL = "leasehold_fence_regression_total", Counter, Count,
        "Grants at which the server's fence counter had lost data";
    /// Gauge of how long the server has been out of reach by now, in seconds; zero when it is not.
    STORE_UNREACHABLE_SECONDS = "leasehold_store_unreachable_seconds", Gauge, Seconds,
        "How long the server has been out of reach by now";
    /// Counter of failed store commands by `kind`.
    STORE_ERRORS_TOTAL = "leasehold_store_errors_total", Counter, Count,
        "Failed store commands by kind";
}

const WAIT: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
const HOLD: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
];
const RENEWAL: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
const RATIO: &[f64] = &[0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0];
const HANDOVER: &[f64] = &[
    0.000_001, 0.000_005, 0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5,
    1.0,
];
const POSITION: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0, 1024.0, 4096.0];
const TURN: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1024.0];
