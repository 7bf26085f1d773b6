use leasehold_core::{Stamp, metric::GateMetrics};

use crate::{
    error::StaleFence,
    rule::{Admitted, Verdict},
};

/// Counts and traces what a kind of gate refuses.
#[derive(Debug)]
pub(crate) struct Refusals {
    kind: &'static str,
    metrics: GateMetrics,
}

impl Refusals {
    /// Begins to count for a kind of gate, from zero.
    pub(crate) fn new(kind: &'static str) -> Self {
        let metrics = GateMetrics::new(kind);
        metrics.show();
        Self { kind, metrics }
    }

    /// A stamp was admitted. It shows the counter, so that a recorder that was installed late sees
    /// a zero before the first refusal.
    pub(crate) fn admitted(&self) {
        self.metrics.show();
    }

    /// Notes a verdict, and makes the error of a refusal.
    pub(crate) fn judged(
        &self,
        verdict: Verdict,
        resource: &str,
        presented: Stamp,
    ) -> Result<Admitted, StaleFence> {
        match verdict {
            Verdict::Admit(admitted) => {
                self.admitted();
                Ok(admitted)
            }
            Verdict::Refuse { highest } => Err(self.refuse(resource, presented, highest)),
        }
    }

    /// Counts and traces a refusal, and makes its error.
    pub(crate) fn refuse(&self, resource: &str, presented: Stamp, highest: Stamp) -> StaleFence {
        self.metrics.rejected();
        tracing::warn!(
            gate = self.kind,
            resource,
            fence = presented.fence.get(),
            lease = %presented.lease,
            highest_fence = highest.fence.get(),
            highest_lease = %highest.lease,
            "refused a write with a stale fence"
        );
        StaleFence { presented, highest, resource: resource.into() }
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testing::stamp;
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    #[test]
    fn refusals_are_counted_by_kind_of_gate_and_start_at_zero() {
        let recorder = DebuggingRecorder::new();
        let seen = || {
            let all = recorder.snapshotter().snapshot().into_vec().into_iter();
            all.map(|(key, .., value)| {
                let (name, labels) = (key.key().name().to_owned(), key.key().labels());
                let labels: Vec<_> = labels.map(|l| format!("{}={}", l.key(), l.value())).collect();
                (name, labels, value)
            })
            .collect::<Vec<_>>()
        };
        let row = |count| {
            let name = "leasehold_fence_rejected_total".to_owned();
            vec![(name, vec!["gate=redis".to_owned()], DebugValue::Counter(count))]
        };
        metrics::with_local_recorder(&recorder, || {
            let refusals = Refusals::new("redis");
            refusals.admitted();
            assert_eq!(seen(), row(0));
            refusals.refuse("a", stamp(1, 1), stamp(2, 2));
            assert_eq!(seen(), row(1));
        });
    }
}
