use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::metric::names;
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

/// How many renewals were so many tenths of a millisecond late; the last counts all above.
#[derive(Debug)]
struct Lags(Vec<AtomicU64>);

impl Tally {
    /// Nothing was renewed yet.
    pub(super) fn new() -> Self {
        // All of the room is taken now: it is no memory of leases.
        let lags = Lags((0..=Lags::MOST).map(|_| AtomicU64::new(0)).collect());
        Self { renewed: Arc::default(), failed: Arc::default(), lags: Arc::new(lags) }
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
        self.lags.0.iter().for_each(|bucket| bucket.store(0, Ordering::Relaxed));
    }

    /// How late a part of the renewals were at most, in milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "there are few buckets")]
    pub(super) fn lag_ms(&self, part: u64, of: u64) -> f64 {
        let buckets: Vec<u64> = self.lags.0.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        let mut left = (buckets.iter().sum::<u64>() * part).div_ceil(of);
        let found = buckets.iter().position(|&renewals| {
            let found = left <= renewals;
            left = left.saturating_sub(renewals);
            found
        });
        found.unwrap_or_default() as f64 / 10.0
    }
}

impl Lags {
    /// Ten seconds.
    const MOST: usize = 100_000;
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
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
    fn record(&self, value: f64) {
        let bucket = (value * 1e4).ceil() as usize;
        self.0[bucket.min(Self::MOST)].fetch_add(1, Ordering::Relaxed);
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
