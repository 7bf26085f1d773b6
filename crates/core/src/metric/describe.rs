use metrics::{KeyName, with_recorder};

use super::names::{self, Kind};

/// Tells the installed recorder the unit and meaning of every metric.
///
/// The watchdog repeats this every few seconds, so that a recorder that is installed late learns it
/// too. Call it yourself to have the descriptions at once.
pub fn describe_metrics() {
    with_recorder(|recorder| {
        for (name, kind, unit, meaning) in names::ALL {
            let (name, unit, meaning) = (KeyName::from(*name), Some(*unit), (*meaning).into());
            match kind {
                Kind::Counter => recorder.describe_counter(name, unit, meaning),
                Kind::Gauge => recorder.describe_gauge(name, unit, meaning),
                Kind::Histogram(_) => recorder.describe_histogram(name, unit, meaning),
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
    names::ALL.iter().filter_map(|(name, kind, ..)| match kind {
        Kind::Histogram(bounds) => Some((*name, *bounds)),
        Kind::Counter | Kind::Gauge => None,
    })
}
