//! The names of all metrics.

use metrics::Unit;

/// What kind of metric a name is; a histogram has the upper bounds of its buckets.
pub(super) enum MetricKind {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}

use MetricKind::{Counter, Gauge, Histogram};

/// Defines every metric once: its name, kind, unit, labels and description.
macro_rules! metrics {
    ($(
        $(#[$more:meta])*
        $id:ident = $name:literal, $kind:ident $(($bounds:ident))?, $unit:ident,
        [$($label:ident $(, $other:ident)*)?], $meaning:literal;
    )+) => {
        $(
            #[doc = concat!(
                $meaning, " (", stringify!($kind), ", ", stringify!($unit), ").",
                $(" Labels: `", stringify!($label), "`" $(, ", `", stringify!($other), "`")*, ".")?
            )]
            ///
            $(#[$more])*
            pub const $id: &str = $name;
        )+

        pub(super) const ALL: &[(&str, MetricKind, Unit, &str)] = &[$(($name, $kind $(($bounds))?, Unit::$unit, $meaning),)+];
    };
}

metrics! {
    ACQUIRE_TOTAL = "leasehold_acquire_total", Counter, Count, [class, outcome],
        "Acquire calls by outcome";
    ACQUIRE_WAIT_SECONDS = "leasehold_acquire_wait_seconds", Histogram(WAIT), Seconds, [class],
        "Time from asking for a lock to holding it";
    /// Counted at the end of the call, as [`ACQUIRE_TOTAL`] is.
    CONTENDED_TOTAL = "leasehold_contended_total", Counter, Count, [class],
        "Acquire calls that found the lock taken";
    WAITERS = "leasehold_waiters", Gauge, Count, [class],
        "Acquire calls that wait for a lock";
    LONGEST_WAIT_SECONDS = "leasehold_longest_wait_seconds", Gauge, Seconds, [class],
        "Longest time that an acquire call has been waiting by now";
    HELD = "leasehold_held", Gauge, Count, [class],
        "Leases held by this process";
    OLDEST_HOLD_SECONDS = "leasehold_oldest_hold_seconds", Gauge, Seconds, [class],
        "Longest time that a lease has been held by now";
    HOLD_SECONDS = "leasehold_hold_seconds", Histogram(HOLD), Seconds, [class, end],
        "Time a lease was held, by its end";
    WAKEUPS_TOTAL = "leasehold_wakeups_total", Counter, Count, [class, source],
        "Times a waiter was woken because it was its turn, by source";
    QUEUE_POSITION = "leasehold_queue_position", Histogram(POSITION), Count, [class],
        "Tasks and runtimes before an acquire call that had to wait";
    HANDOVER_SECONDS = "leasehold_handover_seconds", Histogram(HANDOVER), Seconds, [class],
        "Time from offering the lock to a waiter until it took it";
    TURN_LEASES = "leasehold_turn_leases", Histogram(TURN), Count, [class],
        "Leases of one turn of this process";
    KEPT_TOTAL = "leasehold_kept_total", Counter, Count, [class, outcome],
        "Times an idle turn was reused, recalled, or ended by itself";
    IDLE_TURNS = "leasehold_idle_turns", Gauge, Count, [],
        "Locks that this process keeps idle";
    RENEWALS_TOTAL = "leasehold_renewals_total", Counter, Count, [class, outcome],
        "Renewals by outcome";
    RENEWAL_SECONDS = "leasehold_renewal_seconds", Histogram(RENEWAL), Seconds, [],
        "Round trip of a renewal command";
    RENEWAL_LAG_SECONDS = "leasehold_renewal_lag_seconds", Histogram(RENEWAL), Seconds, [],
        "How late renewals were sent; a starved runtime shows here";
    /// Not of the first renewal of a grant that was told for less than half its ttl, as a push is:
    /// it has little left from the beginning.
    RENEWAL_MARGIN_SECONDS = "leasehold_renewal_margin_seconds", Histogram(RENEWAL), Seconds, [class],
        "Belief that was left when a renewal was confirmed";
    RENEWAL_MARGIN_RATIO = "leasehold_renewal_margin_ratio", Histogram(RATIO), Count, [class],
        "Share of the ttl that was left when a renewal was confirmed";
    LOST_TOTAL = "leasehold_lost_total", Counter, Count, [class, reason],
        "Lost leases by reason";
    RELEASE_TOTAL = "leasehold_release_total", Counter, Count, [class, outcome, via],
        "Releases by outcome and way";
    FENCE_REJECTED_TOTAL = "leasehold_fence_rejected_total", Counter, Count, [gate],
        "Writes that a gate refused for their stale fence";
    FENCE_REGRESSION_TOTAL = "leasehold_fence_regression_total", Counter, Count, [],
        "Grants at which the server's fence counter had lost data";
    MESSAGES_TOTAL = "leasehold_messages_total", Counter, Count, [outcome],
        "Messages on the channel of this runtime, by what became of them";
    STORE_UNREACHABLE_SECONDS = "leasehold_store_unreachable_seconds", Gauge, Seconds, [],
        "How long the server has been out of reach by now";
    STORE_ERRORS_TOTAL = "leasehold_store_errors_total", Counter, Count, [kind],
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
