use std::{fmt, future::Future, pin::Pin, sync::Arc};

use leasehold_core::{Stamp, metric::GateMetrics};

use crate::error::{GateError, StaleFence};

/// A future of the verdict of a gate.
pub type GateFuture<'a> = Pin<Box<dyn Future<Output = Result<Admitted, GateError>> + Send + 'a>>;

/// A gate before a storage, which refuses stale fences for each resource.
///
/// A gate keeps the highest [`Stamp`] that it has admitted to each resource, its *watermark*, and
/// applies the rule of [`judge`](crate::judge) to the next. A resource is whatever one lock
/// protects: presenting fences of different locks for one resource would compare unlike things.
///
/// # Errors
///
/// Both methods fail alike:
///
/// - [`GateError::Stale`] when another holder has been admitted; each counts in
///   `leasehold_fence_rejected_total`.
/// - [`GateError::Store`] when the storage failed; this says nothing about the lease.
/// - [`GateError::Resource`] when the storage cannot keep a watermark for the resource.
/// - [`GateError::Conflict`] when a database repeatedly aborted the admission for others.
/// - [`GateError::NotShutOut`] when an object store makes ETags from the bytes alone: the watermark
///   has moved, but a holder that had looked before may still write.
///
/// # Cancel safety
///
/// After a drop it is unknown whether the watermark has moved. The call may be repeated with the
/// same stamp.
pub trait FenceGate: fmt::Debug + Send + Sync + 'static {
    /// Admits a newer fence, or an equal one of the same lease, and keeps it as the watermark.
    ///
    /// A write that follows is a second step, before which a newer holder may be admitted: use it
    /// only for a storage that cannot compare by itself, and prefer a gate's own fenced write.
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a>;

    /// Moves the watermark on when a lease is taken, before its first write.
    ///
    /// From then on the earlier holder is shut out, even if the new one never writes. The rule is
    /// that of [`admit`](Self::admit), so a stale holder already fails here.
    fn advance<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        self.admit(resource, presented)
    }
}

/// A shared gate is a gate, too.
impl<G: FenceGate + ?Sized> FenceGate for Arc<G> {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        (**self).admit(resource, presented)
    }

    fn advance<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        (**self).advance(resource, presented)
    }
}

/// Judges a stamp against the highest one that a resource has seen.
///
/// A newer fence is admitted, and an equal one of the same lease; everything else is refused.
/// Every gate applies this rule; a gate of your own must do so in one atomic step with the write.
///
/// ```
/// # use leasehold_core::{AcquisitionId, Fence, RuntimeId};
/// # use leasehold_fencing::{Admitted, Stamp, Verdict, judge};
/// # let runtime = RuntimeId::new(uuid::Uuid::nil());
/// # let stamp = |fence: u64, number| -> Result<Stamp, leasehold_core::FenceError> {
/// #     Ok(Stamp::new(Fence::try_from(fence)?, AcquisitionId::new(runtime, number)))
/// # };
/// let (older, newer) = (stamp(41, 1)?, stamp(42, 2)?);
/// assert_eq!(judge(Some(older), newer), Verdict::Admit(Admitted::Newer));
/// assert_eq!(judge(Some(newer), older), Verdict::Refuse { highest: newer });
/// # Ok::<(), leasehold_core::FenceError>(())
/// ```
pub fn judge(watermark: Option<Stamp>, presented: Stamp) -> Verdict {
    match watermark {
        None => Verdict::Admit(Admitted::First),
        Some(highest) if highest == presented => Verdict::Admit(Admitted::Again),
        Some(highest) if highest.fence < presented.fence => Verdict::Admit(Admitted::Newer),
        Some(highest) => Verdict::Refuse { highest },
    }
}

/// What a gate decides about a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a refused stamp must not write"]
pub enum Verdict {
    /// The writer may write, and its stamp becomes the watermark.
    Admit(Admitted),
    /// The writer must not write.
    Refuse {
        /// The highest stamp that was admitted.
        highest: Stamp,
    },
}

/// How an admitted stamp compares to the watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Admitted {
    /// The resource had no watermark: no fenced write came before, or the watermark was forgotten.
    First,
    /// The fence is newer than the watermark; earlier holders are shut out from now on.
    Newer,
    /// The same lease was admitted before.
    Again,
}

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

    /// A stamp was admitted. A recorder that was installed late sees a zero before the first
    /// refusal.
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
pub(crate) use tests::fuzzed;

#[cfg(test)]
mod tests {
    use leasehold_testing::stamp;
    use metrics_util::debugging::{DebugValue, DebuggingRecorder};

    use super::*;

    /// How many strange texts a test tries: `PROPTEST_CASES`, or enough for a second or two.
    pub(crate) fn fuzzed() -> proptest::test_runner::Config {
        use proptest::test_runner::Config;

        let mut config = Config { failure_persistence: None, ..Config::default() };
        if std::env::var_os("PROPTEST_CASES").is_none() {
            config.cases = 3_000;
        }
        config
    }

    #[test]
    fn only_a_newer_fence_or_the_same_lease_is_admitted() {
        let highest = stamp(42, 2);
        for (presented, verdict) in [
            (stamp(43, 3), Verdict::Admit(Admitted::Newer)),
            (stamp(43, 2), Verdict::Admit(Admitted::Newer)),
            (stamp(42, 2), Verdict::Admit(Admitted::Again)),
            (stamp(42, 3), Verdict::Refuse { highest }),
            (stamp(41, 2), Verdict::Refuse { highest }),
            (stamp(41, 1), Verdict::Refuse { highest }),
            (stamp(5, 1), Verdict::Refuse { highest }),
        ] {
            assert_eq!(judge(Some(highest), presented), verdict, "{presented}");
        }
        assert_eq!(judge(None, stamp(1, 1)), Verdict::Admit(Admitted::First));
    }

    #[test]
    fn fences_are_compared_as_numbers() {
        let refused = Verdict::Refuse { highest: stamp(10, 2) };
        assert_eq!(judge(Some(stamp(10, 2)), stamp(9, 3)), refused);
        assert_eq!(judge(Some(stamp(9, 3)), stamp(10, 2)), Verdict::Admit(Admitted::Newer));
    }

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
