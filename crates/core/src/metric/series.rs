use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use metrics::{Key, KeyName, Label, with_recorder};

use super::{
    labels::{
        AcquireOutcome, HoldEnd, KeptOutcome, MessageOutcome, ReleaseOutcome, ReleaseVia,
        RenewalOutcome, WakeSource,
    },
    names::{self, MetricKind},
    record::{count, record, set},
    since::Lasting,
};
use crate::{
    clock::Instant,
    lease::LossReason,
    mutex::Mutex,
    store::StoreErrorKind,
    types::{Class, Ttl},
};

/// The keys of a metric, one for each value of its last label.
fn keys(
    name: &'static str,
    labels: &[Label],
    last: &'static str,
    values: &[&'static str],
) -> Vec<Key> {
    let key = |value: &&'static str| {
        let last = [Label::from_static_parts(last, value)];
        Key::from_parts(name, [labels, &last].concat())
    };
    values.iter().map(key).collect()
}

/// The series of one class of locks, with keys that are built once.
pub struct ClassMetrics {
    class: Class,
    acquire: Vec<Key>,
    wait: Key,
    contended: Key,
    /// Acquire calls that wait.
    pub waits: Lasting,
    /// Leases that are held.
    pub holds: Lasting,
    hold: Vec<Key>,
    wakeups: Vec<Key>,
    position: Key,
    handover: Key,
    turn: Key,
    kept: Vec<Key>,
    renewals: Vec<Key>,
    margin: Key,
    margin_ratio: Key,
    lost: Vec<Key>,
    release: Vec<Vec<Key>>,
}

impl ClassMetrics {
    /// Builds the keys of a class.
    pub fn new(class: Class) -> Self {
        let of_class = [Label::new("class", Arc::<str>::from(class.as_str()))];
        let with = |name| Key::from_parts(name, of_class.to_vec());
        let each = |name, label, values: &[_]| keys(name, &of_class, label, values);
        let release = |outcome: &&'static str| {
            let [of_class] = of_class.clone();
            let labels = [of_class, Label::from_static_parts("outcome", outcome)];
            keys(names::RELEASE_TOTAL, &labels, "via", ReleaseVia::LABELS)
        };
        let reasons: Vec<_> = LossReason::ALL.iter().map(|reason| reason.as_label()).collect();
        Self {
            acquire: each(names::ACQUIRE_TOTAL, "outcome", AcquireOutcome::LABELS),
            wait: with(names::ACQUIRE_WAIT_SECONDS),
            contended: with(names::CONTENDED_TOTAL),
            waits: Lasting::new(with(names::WAITERS), with(names::LONGEST_WAIT_SECONDS)),
            holds: Lasting::new(with(names::HELD), with(names::OLDEST_HOLD_SECONDS)),
            hold: each(names::HOLD_SECONDS, "end", HoldEnd::LABELS),
            wakeups: each(names::WAKEUPS_TOTAL, "source", WakeSource::LABELS),
            position: with(names::QUEUE_POSITION),
            handover: with(names::HANDOVER_SECONDS),
            turn: with(names::TURN_LEASES),
            kept: each(names::KEPT_TOTAL, "outcome", KeptOutcome::LABELS),
            renewals: each(names::RENEWALS_TOTAL, "outcome", RenewalOutcome::LABELS),
            margin: with(names::RENEWAL_MARGIN_SECONDS),
            margin_ratio: with(names::RENEWAL_MARGIN_RATIO),
            lost: each(names::LOST_TOTAL, "reason", &reasons),
            release: ReleaseOutcome::LABELS.iter().map(release).collect(),
            class,
        }
    }

    /// The class whose series these are.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// An acquire call ended.
    pub fn acquire(&self, outcome: AcquireOutcome) {
        count(&self.acquire[outcome as usize], 1);
    }

    /// A call got its lease after waiting for `wait`.
    pub fn waited(&self, wait: Duration) {
        record(&self.wait, wait.as_secs_f64());
    }

    /// An acquire call ended that had found the lock taken; to be called after
    /// [`acquire`](Self::acquire).
    pub fn contended(&self) {
        count(&self.contended, 1);
    }

    /// A lease ended after it was held for `time`.
    pub fn hold(&self, end: HoldEnd, time: Duration) {
        record(&self.hold[end as usize], time.as_secs_f64());
    }

    /// A waiter took the lock, this long after it was offered.
    pub fn wakeup(&self, source: WakeSource, handover: Duration) {
        count(&self.wakeups[source as usize], 1);
        record(&self.handover, handover.as_secs_f64());
    }

    /// An acquire call has to wait behind so many tasks of its runtime, and other runtimes.
    #[expect(clippy::cast_precision_loss, reason = "a number of things in memory is below 2^53")]
    pub fn queued(&self, before: u64) {
        record(&self.position, before as f64);
    }

    /// A turn ended after this many leases.
    pub fn turn(&self, leases: u32) {
        record(&self.turn, f64::from(leases));
    }

    /// An idle turn went on, or ended.
    pub fn kept(&self, outcome: KeptOutcome) {
        count(&self.kept[outcome as usize], 1);
    }

    /// A renewal was answered, or failed.
    pub fn renewal(&self, outcome: RenewalOutcome) {
        count(&self.renewals[outcome as usize], 1);
    }

    /// A renewal of a lease of `ttl` was confirmed with this much belief left.
    pub fn renewal_margin(&self, margin: Duration, ttl: Ttl) {
        record(&self.margin, margin.as_secs_f64());
        record(&self.margin_ratio, margin.div_duration_f64(ttl.get()));
    }

    /// A lease was lost.
    pub fn lost(&self, reason: LossReason) {
        count(&self.lost[reason as usize], 1);
    }

    /// A release was answered, or failed.
    pub fn release(&self, outcome: ReleaseOutcome, via: ReleaseVia) {
        count(&self.release[outcome as usize][via as usize], 1);
    }

    /// Shows the counters and gauges to the recorder, gauges as they stand at `now`. Counters are shown as 0 from
    /// the start, because an alert on an increase needs a first value.
    pub fn show(&self, now: Instant) {
        let release = self.release.iter().flatten();
        let counters = self.acquire.iter().chain(&self.renewals).chain(&self.lost);
        for key in counters.chain(&self.wakeups).chain(&self.kept).chain(release) {
            count(key, 0);
        }
        count(&self.contended, 0);
        self.waits.show(now);
        self.holds.show(now);
    }
}

impl fmt::Debug for ClassMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassMetrics").field("class", &self.class).finish_non_exhaustive()
    }
}

/// The series that concern a runtime as a whole.
#[derive(Debug)]
pub struct StoreMetrics {
    errors: Vec<Key>,
    regressions: Key,
    messages: Vec<Key>,
    renewal: Key,
    lag: Key,
    unreachable: Key,
    idle: Key,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        let kinds: Vec<_> = StoreErrorKind::ALL.iter().map(|kind| kind.as_label()).collect();
        Self {
            errors: keys(names::STORE_ERRORS_TOTAL, &[], "kind", &kinds),
            messages: keys(names::MESSAGES_TOTAL, &[], "outcome", MessageOutcome::LABELS),
            regressions: Key::from_static_name(names::FENCE_REGRESSION_TOTAL),
            renewal: Key::from_static_name(names::RENEWAL_SECONDS),
            lag: Key::from_static_name(names::RENEWAL_LAG_SECONDS),
            unreachable: Key::from_static_name(names::STORE_UNREACHABLE_SECONDS),
            idle: Key::from_static_name(names::IDLE_TURNS),
        }
    }
}

impl StoreMetrics {
    /// A store command failed.
    pub fn error(&self, kind: StoreErrorKind) {
        count(&self.errors[kind as usize], 1);
    }

    /// A grant showed that the server's fence counter was behind a fence that this process had seen.
    pub fn regression(&self) {
        count(&self.regressions, 1);
    }

    /// A message came.
    pub fn message(&self, outcome: MessageOutcome) {
        count(&self.messages[outcome as usize], 1);
    }

    /// A renewal command took this long.
    pub fn renewal(&self, round_trip: Duration) {
        record(&self.renewal, round_trip.as_secs_f64());
    }

    /// Renewals were sent this late.
    pub fn renewal_lag(&self, lag: Duration) {
        record(&self.lag, lag.as_secs_f64());
    }

    /// The server has been out of reach for this long by now; zero when it is not.
    pub fn unreachable(&self, time: Duration) {
        set(&self.unreachable, time.as_secs_f64());
    }

    /// So many turns are idle.
    #[expect(clippy::cast_precision_loss, reason = "a number of things in memory is below 2^53")]
    pub fn idle(&self, turns: usize) {
        set(&self.idle, turns as f64);
    }

    /// Shows the counters to the recorder.
    pub fn show(&self) {
        for key in self.errors.iter().chain(&self.messages).chain([&self.regressions]) {
            count(key, 0);
        }
    }
}

/// The series of one kind of gate, which stands between stale fences and a storage.
#[derive(Debug)]
pub struct GateMetrics {
    rejected: Key,
}

impl GateMetrics {
    /// Builds the key for a kind of gate, such as `redis`; never the name of a resource.
    pub fn new(gate: &'static str) -> Self {
        let labels = vec![Label::from_static_parts("gate", gate)];
        Self { rejected: Key::from_parts(names::FENCE_REJECTED_TOTAL, labels) }
    }

    /// A fence was refused.
    pub fn rejected(&self) {
        count(&self.rejected, 1);
    }

    /// Shows the series to the recorder, as [`ClassMetrics::show`].
    pub fn show(&self) {
        count(&self.rejected, 0);
    }
}

/// Tells the installed recorder the unit and meaning of every metric.
///
/// The watchdog repeats this every few seconds, for a recorder that is installed late. Call it
/// yourself to have the descriptions at once.
pub fn describe_metrics() {
    with_recorder(|recorder| {
        for (name, kind, unit, meaning) in names::ALL {
            let (name, unit, meaning) = (KeyName::from(*name), Some(*unit), (*meaning).into());
            match kind {
                MetricKind::Counter => recorder.describe_counter(name, unit, meaning),
                MetricKind::Gauge => recorder.describe_gauge(name, unit, meaning),
                MetricKind::Histogram(_) => recorder.describe_histogram(name, unit, meaning),
            }
        }
    });
}

/// The name of each histogram, with suitable upper bounds for its buckets, in the unit of the metric.
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
        MetricKind::Histogram(bounds) => Some((*name, *bounds)),
        MetricKind::Counter | MetricKind::Gauge => None,
    })
}

/// All series of one runtime: those of the runtime itself, and those of each class it has seen.
#[derive(Debug, Default)]
pub struct Metrics {
    store: StoreMetrics,
    classes: Mutex<BTreeMap<Class, Arc<ClassMetrics>>>,
}

impl Metrics {
    /// The greatest number of classes; locks of any further class are counted as `other`.
    pub const MAX_CLASSES: usize = 128;

    /// The series that concern the runtime as a whole.
    pub fn store(&self) -> &StoreMetrics {
        &self.store
    }

    /// The series of a class.
    pub fn class(&self, class: &Class) -> Arc<ClassMetrics> {
        let mut classes = self.classes.lock();
        if let Some(metrics) = classes.get(class) {
            return Arc::clone(metrics);
        }
        let class = if classes.len() < Self::MAX_CLASSES { class.clone() } else { Class::other() };
        let metrics =
            classes.entry(class.clone()).or_insert_with(|| Arc::new(ClassMetrics::new(class)));
        Arc::clone(metrics)
    }

    /// The series of a class in a forked process. They belong to no runtime, and [`show`](Self::show) does not
    /// cover them.
    pub fn unknown(class: &Class) -> Arc<ClassMetrics> {
        Arc::new(ClassMetrics::new(class.clone()))
    }

    /// Describes every metric, and shows the counters and the gauges of the classes to the recorder, gauges as
    /// they stand at `now`.
    pub fn show(&self, now: Instant) {
        describe_metrics();
        self.store.show();
        let classes = self.classes.lock();
        for metrics in classes.values() {
            metrics.show(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_bounded() {
        let metrics = Metrics::default();
        for i in 0..1000 {
            let class = Class::new(format!("class-{i}")).unwrap();
            let _ = metrics.class(&class);
        }
        let other = metrics.class(&Class::new("one-more").unwrap());
        assert_eq!(other.class().as_str(), "other");
        assert!(metrics.classes.lock().len() <= Metrics::MAX_CLASSES + 1);
    }
}
