use std::{cell::RefCell, collections::BTreeMap};

use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

/// A recorder that a test looks into; each look adds what came since the last one.
pub(crate) struct Seen {
    snapshotter: Snapshotter,
    series: RefCell<BTreeMap<String, Value>>,
}

/// What was seen of a series so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Value {
    /// The sum of a counter, or how many values a histogram got.
    pub(crate) count: u64,
    /// The level of a gauge.
    pub(crate) level: i64,
    /// The values of a histogram.
    pub(crate) values: Vec<f64>,
    /// Whether unit and description were told.
    pub(crate) described: bool,
}

/// The whole part of a gauge: things are counted whole, and ages are told to the second.
#[expect(clippy::cast_possible_truncation, reason = "a gauge of a test is small")]
fn whole(level: f64) -> i64 {
    level.floor() as i64
}

/// The number in a value of a histogram.
fn ordered(value: impl Into<f64>) -> f64 {
    value.into()
}

impl Seen {
    /// Looks into a recorder.
    pub(crate) fn in_recorder(recorder: &DebuggingRecorder) -> Self {
        Self { snapshotter: recorder.snapshotter(), series: RefCell::default() }
    }

    /// What was seen of a series, as `name{label=value,…}` with its labels in alphabetical order.
    pub(crate) fn get(&self, series: &str) -> Option<Value> {
        self.look();
        self.series.borrow().get(series).cloned()
    }

    /// The count of a series, zero when it was never seen.
    pub(crate) fn count(&self, series: &str) -> u64 {
        self.get(series).unwrap_or_default().count
    }

    /// Every series seen so far.
    pub(crate) fn all(&self) -> BTreeMap<String, Value> {
        self.look();
        self.series.borrow().clone()
    }

    fn look(&self) {
        let mut series = self.series.borrow_mut();
        for (key, unit, description, value) in self.snapshotter.snapshot().into_vec() {
            let key = key.key();
            let mut labels: Vec<_> =
                key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
            labels.sort();
            let name = if labels.is_empty() {
                key.name().to_owned()
            } else {
                format!("{}{{{}}}", key.name(), labels.join(","))
            };
            let seen = series.entry(name).or_default();
            seen.described |= description.is_some() && unit.is_some();
            match value {
                DebugValue::Counter(count) => seen.count += count,
                // A look sets the gauge to zero, and the next absolute value mends that.
                DebugValue::Gauge(level) => {
                    seen.level = whole(level.into());
                }
                DebugValue::Histogram(values) => {
                    seen.count += u64::try_from(values.len()).unwrap();
                    seen.values.extend(values.into_iter().map(ordered));
                }
            }
        }
    }
}
