use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::metric::names;
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};

/// What is counted of renewals.
#[derive(Debug)]
pub(super) struct Tally {
    renewed: Arc<Count>,
    failed: Arc<Count>,
    lags: Arc<Lags>,
}

#[derive(Debug, Default)]
struct Count(AtomicU64);

/// How late renewals were, in seconds.
#[derive(Debug)]
struct Lags(Mutex<Vec<f32>>);

impl Tally {
    /// Room for so many renewals, which is not touched before they come.
    pub(super) fn with_room(renewals: usize) -> Self {
        let lags = Arc::new(Lags(Mutex::new(Vec::with_capacity(renewals))));
        Self { renewed: Arc::default(), failed: Arc::default(), lags }
    }

    /// How many leases were renewed.
    pub(super) fn renewed(&self) -> u64 {
        self.renewed.0.load(Ordering::Relaxed)
    }

    /// How many renewals failed.
    pub(super) fn failed(&self) -> u64 {
        self.failed.0.load(Ordering::Relaxed)
    }

    /// A renewal was sent so late.
    pub(super) fn sent(&self, lag: Duration) {
        self.lags.record(lag.as_secs_f64());
    }

    /// A renewal was answered.
    pub(super) fn answered(&self, is_renewed: bool) {
        if is_renewed { self.renewed.increment(1) } else { self.failed.increment(1) }
    }

    /// Forgets how late renewals were until now.
    pub(super) fn forget_lags(&self) {
        self.lags.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How late renewals were, in milliseconds, earliest first.
    pub(super) fn lags(&self) -> Vec<f32> {
        let lags = self.lags.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lags: Vec<f32> = lags.iter().map(|lag| lag * 1e3).collect();
        lags.sort_by(f32::total_cmp);
        lags
    }
}

impl CounterFn for Count {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Ordering::Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }
}

impl HistogramFn for Lags {
    #[expect(clippy::cast_possible_truncation, reason = "seven digits are enough")]
    fn record(&self, value: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value as f32);
    }
}

/// Listens to what the library tells of its renewals.
pub(super) struct Listener(pub(super) Arc<Tally>);

impl Recorder for Listener {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        if key.name() != names::RENEWALS_TOTAL {
            return Counter::noop();
        }
        let is_renewed = key.labels().any(|label| label.value() == "renewed");
        let count = if is_renewed { &self.0.renewed } else { &self.0.failed };
        Counter::from_arc(Arc::clone(count))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        if key.name() != names::RENEWAL_LAG_SECONDS {
            return Histogram::noop();
        }
        Histogram::from_arc(Arc::clone(&self.0.lags))
    }
}
