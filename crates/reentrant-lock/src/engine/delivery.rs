use std::{sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, Mode, StoreError, StoreErrorKind, Ttl, backoff,
    lease::{HoldUpdate, LossReason, believed_until},
    metric::{ClassMetrics, ReleaseOutcome, ReleaseVia},
    store::ReleaseAnswer,
};
use leasehold_watchdog::HeldLease;
use tokio::sync::Notify;

use crate::{
    durations::SHORT_PAUSES,
    queue::{TurnId, TurnRelease},
};

/// A command that is repeated until the server has answered.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(super) name: LockName,
    pub(super) mode: Mode,
    pub(super) id: AcquisitionId,
    pub(super) ttl: Ttl,
    pub(super) kind: DeliveryKind,
    /// When the acquisition or lease expires on the server by itself.
    pub(super) expires: Instant,
    /// The turn that it ends, if the state of its name waits for the answer.
    pub(super) turn: Option<TurnId>,
    /// What the holder knew, if a holder sends it: its first copy queues no place.
    pub(super) belief: Option<Belief>,
    /// Until when the lock is to stay closed after its release.
    pub(super) closed_until: Option<Instant>,
    /// How a release is counted; `None` if it is not counted, or was counted before.
    pub(super) via: Option<ReleaseVia>,
    pub(super) metrics: Arc<ClassMetrics>,
    /// Notified when the next copy is to be sent at once.
    pub(super) hurry: Arc<Notify>,
}

#[derive(Debug, Clone)]
pub(super) enum DeliveryKind {
    /// End a lease.
    Release(Fence),
    /// Take an acquisition back, whatever it has by now.
    Withdraw,
    /// Count the holds of a lease that goes on.
    Hold { lease: Arc<HeldLease>, update: HoldUpdate },
}

/// A lease that was believed when its holder gave it back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Belief {
    /// Until when it could be believed: no other holder had the lock before.
    pub(crate) until: Instant,
    /// From when on the runtime may have ended the lease by a command of its own.
    pub(crate) overdue_at: Instant,
}

/// How a delivery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryEnd {
    Released,
    /// The server has ended the lease, and keeps the lock closed for so long from the answer on.
    Kept {
        remaining: Duration,
    },
    /// The lease was lost before it was released, or its lock was not kept closed.
    Lost(LossReason),
    /// The server does not have the lease; by a copy of the release, or since its time was over.
    Gone,
    /// The server has refused, or has not answered for as long as it may have had the lease.
    Unconfirmed,
}

impl DeliveryEnd {
    pub(crate) fn metric(self) -> ReleaseOutcome {
        match self {
            Self::Released => ReleaseOutcome::Released,
            Self::Kept { .. } => ReleaseOutcome::Kept,
            Self::Lost(_) | Self::Gone => ReleaseOutcome::Gone,
            Self::Unconfirmed => ReleaseOutcome::Unconfirmed,
        }
    }
}

impl Delivery {
    /// The end of a turn, for whose answer the state of its name waits.
    pub(super) fn release(
        now: Instant,
        (name, mode): (&LockName, Mode),
        metrics: &Arc<ClassMetrics>,
        release: TurnRelease,
    ) -> Self {
        let TurnRelease { turn, ttl, closed_until, via, hurry } = release;
        let (name, metrics, expires) = (name.clone(), Arc::clone(metrics), now + ttl.get());
        let TurnId { id, first } = turn;
        let (kind, turn, belief) = (DeliveryKind::Release(first), Some(turn), None);
        Self { name, mode, id, ttl, kind, expires, turn, belief, closed_until, via, metrics, hurry }
    }

    /// Another command about a lease, for whose answer no state waits.
    pub(super) fn of_lease(now: Instant, lease: &HeldLease, kind: DeliveryKind) -> Self {
        let (turn, ttl) = (lease.turn(), lease.ttl());
        Self::of(now, (lease.name(), turn.mode()), lease.metrics(), turn.id(), ttl, kind)
    }

    /// Another command about an acquisition.
    pub(super) fn of(
        now: Instant,
        (name, mode): (&LockName, Mode),
        metrics: &Arc<ClassMetrics>,
        id: AcquisitionId,
        ttl: Ttl,
        kind: DeliveryKind,
    ) -> Self {
        let (name, metrics, expires) = (name.clone(), Arc::clone(metrics), now + ttl.get());
        let (turn, belief, closed_until, via) = (None, None, None, None);
        let hurry = Arc::default();
        Self { name, mode, id, ttl, kind, expires, turn, belief, closed_until, via, metrics, hurry }
    }

    /// Whether the lock stays closed until the command is executed.
    pub(super) fn is_release(&self) -> bool {
        matches!(self.kind, DeliveryKind::Release(_))
    }

    pub(super) fn is_withdrawal(&self) -> bool {
        matches!(self.kind, DeliveryKind::Withdraw)
    }

    /// Whether a task waits for the answer, or a lock is to stay closed and its ttl may end before.
    pub(super) fn is_awaited(&self, is_first: bool) -> bool {
        match self.kind {
            DeliveryKind::Release(_) if self.closed_until.is_some() => true,
            DeliveryKind::Release(_) if self.belief.is_none() => {
                self.turn.is_some() && self.via != Some(ReleaseVia::Drop)
            }
            DeliveryKind::Release(_) | DeliveryKind::Hold { .. } => is_first,
            DeliveryKind::Withdraw => false,
        }
    }

    pub(super) fn count(&self, end: DeliveryEnd) {
        let Some(via) = self.via else { return };
        self.metrics.release(end.metric(), via);
        if end.metric() == ReleaseOutcome::Unconfirmed {
            // The failures of its commands are logged, and the metrics count it.
            tracing::debug!(
                lock = %self.name, lease = %self.id,
                "a release was not confirmed by the server; the lease ends with its ttl"
            );
        }
        if let DeliveryEnd::Lost(reason) = end {
            self.metrics.lost(reason);
        }
    }
}

/// When the next copy of a release is sent, and what an answer means; from its first copy to its end.
///
/// One copy of its command is in flight at a time, unless a place in the queue depends on the
/// release: then another copy follows in the time of a heartbeat, answered or not.
///
/// | event | then |
/// |---|---|
/// | a copy is answered | done: [`DeliveryEnd`] says what the answer means |
/// | a copy fails, and no other is in flight | the next copy is sent after a pause |
/// | the server refuses | done: `Unconfirmed` |
/// | the next turn has begun | done: `Released`, since the server grants only what was released |
/// | the lease has expired | done: `Unconfirmed` |
#[derive(Debug, Default)]
pub(crate) struct RepeatRules {
    expires: Instant,
    belief: Option<Belief>,
    /// When the next copy is due; `None` while an answer is awaited.
    send_at: Option<Instant>,
    in_flight: usize,
    failures: u32,
    /// Whether an earlier copy may have been executed without an answer.
    doubtful: bool,
    /// The first copy that asked to keep the lock closed: when it was sent, and for how long.
    first_keep: Option<(Instant, Duration)>,
    end: Option<DeliveryEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// Send a copy.
    Send,
    /// Wait for an answer, and until this time at most.
    Wait(Option<Instant>),
    Done(DeliveryEnd),
}

impl RepeatRules {
    /// A release whose first copy is due at `now`.
    pub(crate) fn new(now: Instant, expires: Instant, belief: Option<Belief>) -> Self {
        Self { expires, belief, send_at: Some(now), ..Self::default() }
    }

    /// What to do at `now`; ends what has expired and has no copy in flight.
    pub(crate) fn next(&mut self, now: Instant) -> NextStep {
        if now >= self.expires && self.in_flight == 0 {
            self.end.get_or_insert(DeliveryEnd::Unconfirmed);
        }
        match (self.end, self.send_at) {
            (Some(end), _) => NextStep::Done(end),
            (None, _) if now >= self.expires => NextStep::Wait(None),
            (None, Some(at)) if now >= at => NextStep::Send,
            (None, Some(at)) => NextStep::Wait(Some(at.min(self.expires))),
            (None, None) => NextStep::Wait(None),
        }
    }

    /// How it ended; `None` before that.
    pub(crate) fn end(&self) -> Option<DeliveryEnd> {
        self.end
    }

    pub(crate) fn is_unsent(&self) -> bool {
        self.in_flight == 0 && self.failures == 0
    }

    /// A copy is sent that keeps the lock closed for `keep`; another follows at `again`, if given.
    pub(crate) fn on_send(&mut self, now: Instant, keep: Option<Duration>, again: Option<Instant>) {
        self.doubtful |= self.in_flight > 0;
        self.in_flight += 1;
        self.send_at = again;
        self.first_keep = self.first_keep.or_else(|| Some((now, keep?)));
    }

    pub(crate) fn on_reply(
        &mut self,
        now: Instant,
        jitter: f64,
        reply: &Result<ReleaseAnswer, StoreError>,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.end = match reply {
            Ok(ReleaseAnswer::Kept { remaining }) => {
                Some(DeliveryEnd::Kept { remaining: *remaining })
            }
            Ok(ReleaseAnswer::Gone) => Some(self.gone(now, LossReason::Gone)),
            Ok(ReleaseAnswer::DataLost) => Some(self.gone(now, LossReason::DataLost)),
            Ok(_) => Some(DeliveryEnd::Released),
            Err(error) if error.kind().is_transient() => {
                self.doubtful |= error.kind() == StoreErrorKind::Indeterminate;
                if self.in_flight == 0 {
                    let pause = backoff(SHORT_PAUSES, self.failures, jitter);
                    self.send_at = Some(now + pause);
                    self.failures += 1;
                }
                return;
            }
            Err(_) => Some(DeliveryEnd::Unconfirmed),
        };
    }

    pub(crate) fn on_copy_due(&mut self, now: Instant) {
        self.send_at = Some(now);
    }

    /// The next turn has begun, so this one has ended.
    pub(crate) fn on_next_turn(&mut self) {
        self.end = Some(DeliveryEnd::Released);
    }

    /// What it means at `now` that the server does not have the lease, and says why.
    fn gone(&self, now: Instant, why: LossReason) -> DeliveryEnd {
        let Some(Belief { until, overdue_at }) = self.belief else { return DeliveryEnd::Gone };
        // A lock that was kept would still be there, with a margin for clocks whose rates differ.
        if self.first_keep.is_some_and(|(sent_at, keep)| now < believed_until(sent_at, keep)) {
            return DeliveryEnd::Lost(why);
        }
        if now >= until {
            return DeliveryEnd::Gone;
        }
        // An earlier copy ended it: no other could have before the deadline.
        if self.doubtful || now >= overdue_at {
            DeliveryEnd::Released
        } else {
            DeliveryEnd::Lost(why)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: DeliveryEnd = DeliveryEnd::Lost(LossReason::Gone);

    fn at(micros: u64) -> Instant {
        Instant::at(Duration::from_micros(micros))
    }

    #[test]
    fn gone_is_not_kept_before_the_time_is_over() {
        let kept = || {
            let belief = Belief { until: at(30_000_000), overdue_at: at(0) };
            let mut release = RepeatRules::new(at(0), at(40_000_000), Some(belief));
            release.on_send(at(1_000_000), Some(Duration::from_secs(10)), None);
            release.on_send(at(2_000_000), Some(Duration::from_secs(1)), None);
            release
        };
        assert_eq!(gone_at(kept(), 10_800_000), LOST);
        let later = gone_at(kept(), 10_900_000);
        assert_eq!(later, DeliveryEnd::Released, "a hundredth for clocks that differ");
    }

    fn release() -> RepeatRules {
        let belief = Belief { until: at(9_000), overdue_at: at(3_000) };
        RepeatRules::new(at(0), at(20_000), Some(belief))
    }

    fn failed(kind: StoreErrorKind) -> Result<ReleaseAnswer, StoreError> {
        Err(StoreError::new(kind, "nothing was heard", "repeat it"))
    }

    fn gone_at(mut release: RepeatRules, now: u64) -> DeliveryEnd {
        release.on_reply(at(now), 0.0, &Ok(ReleaseAnswer::Gone));
        release.end().expect("it was answered")
    }

    #[test]
    fn gone_is_a_release_only_after_a_copy_without_an_answer() {
        let sent = |keep| {
            let mut release = release();
            release.on_send(at(0), keep, None);
            release
        };
        assert_eq!(gone_at(sent(None), 10), LOST, "it was the first copy");
        assert_eq!(
            gone_at(sent(None), 3_000),
            DeliveryEnd::Released,
            "the runtime may have sent one"
        );
        assert_eq!(gone_at(sent(None), 9_000), DeliveryEnd::Gone, "its time may have ended it");
        let kept = sent(Some(Duration::from_secs(1)));
        assert_eq!(gone_at(kept, 9_500), LOST, "the lock was to stay closed for longer");

        let again = |kind| {
            let mut release = sent(None);
            release.on_reply(at(10), 0.0, &failed(kind));
            release.on_send(at(20), None, None);
            release
        };
        let definite = again(StoreErrorKind::Definite);
        assert_eq!(gone_at(definite, 30), LOST, "the first copy was not executed");
        assert_eq!(gone_at(again(StoreErrorKind::Indeterminate), 30), DeliveryEnd::Released);

        let mut two = sent(None);
        two.on_send(at(20), None, None);
        assert_eq!(gone_at(two, 30), DeliveryEnd::Released, "the answer to the first is lost");
    }

    #[test]
    fn a_copy_follows_a_failure_until_the_lease_has_expired() {
        let mut release = release();
        assert_eq!(release.next(at(0)), NextStep::Send);
        release.on_send(at(0), None, None);
        assert_eq!(release.next(at(10)), NextStep::Wait(None));
        release.on_reply(at(10), 0.0, &failed(StoreErrorKind::Indeterminate));
        assert_eq!(release.next(at(10)), NextStep::Wait(Some(at(1_010))));
        assert_eq!(release.next(at(1_010)), NextStep::Send);
        assert_eq!(release.next(at(20_000)), NextStep::Done(DeliveryEnd::Unconfirmed));
        release.on_next_turn();
        assert_eq!(release.next(at(20_000)), NextStep::Done(DeliveryEnd::Released));
    }

    #[test]
    fn a_place_is_kept_by_copies_that_do_not_wait_for_answers() {
        let mut release = release();
        release.on_send(at(0), None, Some(at(1_000)));
        assert_eq!(release.next(at(10)), NextStep::Wait(Some(at(1_000))));
        release.on_copy_due(at(20));
        assert_eq!(release.next(at(20)), NextStep::Send);
        release.on_send(at(20), None, Some(at(1_020)));
        release.on_reply(at(30), 0.0, &failed(StoreErrorKind::Indeterminate));
        assert_eq!(
            release.next(at(30)),
            NextStep::Wait(Some(at(1_020))),
            "the other may be answered"
        );
        release.on_reply(at(40), 0.0, &failed(StoreErrorKind::Config));
        assert_eq!(release.next(at(40)), NextStep::Done(DeliveryEnd::Unconfirmed));
    }
}
