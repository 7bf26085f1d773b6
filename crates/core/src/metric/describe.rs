use metrics::{KeyName, Unit, with_recorder};

use super::names;

/// What kind of metric a name is; a histogram has buckets.
enum Kind {
    Counter,
    Gauge,
    Histogram(&'static [f64]),
}

use Kind::{Counter, Gauge, Histogram};

/// Every metric: its name, kind, unit and meaning.
const METRICS: &[(&str, Kind, Unit, &str)] = &[
    (names::ACQUIRE_TOTAL, Counter, Unit::Count, "Acquire calls by outcome"),
    (
        names::ACQUIRE_WAIT_SECONDS,
        Histogram(WAIT),
        Unit::Seconds,
        "Time from asking for a lock to holding it",
    ),
    (names::CONTENDED_TOTAL, Counter, Unit::Count, "Acquire calls that found the lock taken"),
    (names::WAITERS, Gauge, Unit::Count, "Acquire calls that wait for a lock"),
    (
        names::LONGEST_WAIT_SECONDS,
        Gauge,
        Unit::Seconds,
        "Longest time that an acquire call has been waiting by now",
    ),
    (names::HELD, Gauge, Unit::Count, "Leases held by this process"),
    (
        names::OLDEST_HOLD_SECONDS,
        Gauge,
        Unit::Seconds,
        "Longest time that a lease has been held by now",
    ),
    (names::HOLD_SECONDS, Histogram(HOLD), Unit::Seconds, "Time a lease was held, by its end"),
    (
        names::WAKEUPS_TOTAL,
        Counter,
        Unit::Count,
        "Times a waiter was woken because it was its turn, by source",
    ),
    (
        names::QUEUE_POSITION,
        Histogram(POSITION),
        Unit::Count,
        "Tasks and runtimes before an acquire call that had to wait",
    ),
    (
        names::HANDOVER_SECONDS,
        Histogram(HANDOVER),
        Unit::Seconds,
        "Time from offering the lock to a waiter until it took it",
    ),
    (names::TURN_LEASES, Histogram(TURN), Unit::Count, "Leases of one turn of this process"),
    (names::RENEWALS_TOTAL, Counter, Unit::Count, "Renewals by outcome"),
    (names::RENEWAL_SECONDS, Histogram(RENEWAL), Unit::Seconds, "Round trip of a renewal command"),
    (
        names::RENEWAL_LAG_SECONDS,
        Histogram(RENEWAL),
        Unit::Seconds,
        "How late renewals were sent; a starved runtime shows here",
    ),
    (
        names::RENEWAL_MARGIN_SECONDS,
        Histogram(RENEWAL),
        Unit::Seconds,
        "Belief that was left when a renewal was confirmed",
    ),
    (
        names::RENEWAL_MARGIN_RATIO,
        Histogram(RATIO),
        Unit::Count,
        "Share of the ttl that was left when a renewal was confirmed",
    ),
    (names::LOST_TOTAL, Counter, Unit::Count, "Lost leases by reason"),
    (names::RELEASE_TOTAL, Counter, Unit::Count, "Releases by outcome and way"),
    (
        names::FENCE_REJECTED_TOTAL,
        Counter,
        Unit::Count,
        "Writes that a gate refused for their stale fence",
    ),
    (
        names::FENCE_REGRESSION_TOTAL,
        Counter,
        Unit::Count,
        "Grants at which the server's fence counter had lost data",
    ),
    (
        names::STORE_UNREACHABLE_SECONDS,
        Gauge,
        Unit::Seconds,
        "How long the server has been out of reach by now",
    ),
    (names::STORE_ERRORS_TOTAL, Counter, Unit::Count, "Failed store commands by kind"),
];

/// Tells the installed recorder the unit and meaning of every metric.
///
/// The watchdog repeats this every few seconds, so that a recorder that is installed late learns it
/// too. Call it yourself to have the descriptions at once.
pub fn describe_metrics() {
    with_recorder(|recorder| {
        for (name, kind, unit, meaning) in METRICS {
            let (name, unit, meaning) = (KeyName::from(*name), Some(*unit), (*meaning).into());
            match kind {
                Counter => recorder.describe_counter(name, unit, meaning),
                Gauge => recorder.describe_gauge(name, unit, meaning),
                Histogram(_) => recorder.describe_histogram(name, unit, meaning),
            }
        }
    });
}

/// The name of every histogram, and the upper bounds of the buckets that fit it, in its unit.
///
/// ```
/// # use leasehold_core::metric;
/// for (name, bounds) in metric::buckets() {
///     // PrometheusBuilder::set_buckets_for_metric(Matcher::Full(name.into()), bounds)
///     assert!(name.starts_with("leasehold_") && bounds.is_sorted());
/// }
/// ```
pub fn buckets() -> impl Iterator<Item = (&'static str, &'static [f64])> {
    METRICS.iter().filter_map(|(name, kind, ..)| match kind {
        Histogram(bounds) => Some((*name, *bounds)),
        Counter | Gauge => None,
    })
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
