use metrics::Label;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};

use leasehold::metric::names;

use crate::{failure::Failure, tally::Tally};

/// Keeps the library's metrics in memory, for the report.
///
/// A service installs the exporter of its choice instead, such as `metrics-exporter-prometheus`.
#[derive(Clone)]
pub(crate) struct Recorder(Snapshotter);

impl Recorder {
    pub(crate) fn install() -> Result<Self, Failure> {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        recorder.install().map_err(|error| format!("the metrics recorder: {error}"))?;
        Ok(Self(snapshotter))
    }

    /// Adds up what was recorded since the last call.
    pub(crate) fn take(&self, tally: &mut Tally) {
        for (key, _, _, value) in self.0.snapshot().into_vec() {
            let label = |name| key.key().labels().find(|l| l.key() == name).map(Label::value);
            let class = label("class").unwrap_or_default();
            let outcome = label("outcome").unwrap_or_default();
            match (key.key().name(), outcome, value) {
                (names::ACQUIRE_TOTAL, "acquired", DebugValue::Counter(count)) => {
                    tally.class(class).leases += count;
                }
                (names::ACQUIRE_TOTAL, "reentered", DebugValue::Counter(count)) => {
                    tally.class(class).reentries += count;
                }
                (names::CONTENDED_TOTAL, _, DebugValue::Counter(count)) => {
                    tally.class(class).contended += count;
                }
                (names::RENEWALS_TOTAL, "renewed", DebugValue::Counter(count)) => {
                    tally.class(class).renewals += count;
                }
                (names::ACQUIRE_WAIT_SECONDS, _, DebugValue::Histogram(waits)) => {
                    let waits = waits.into_iter().map(|wait| micros(wait.into_inner()));
                    tally.class(class).waits_us.extend(waits);
                }
                (names::FENCE_REJECTED_TOTAL, _, DebugValue::Counter(count)) => {
                    tally.refused += count;
                }
                _ => {}
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a wait of seconds")]
fn micros(seconds: f64) -> u64 {
    (seconds * 1e6) as u64
}
