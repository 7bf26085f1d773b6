use std::{fmt, time::Duration};

use crate::{clock::Instant, durations::STOOD_STILL, outage::tenths};

/// What a holder may believe about its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseState {
    /// The lease is held; without a renewal it is believed until the given instant.
    Held {
        /// When belief ends.
        until: Instant,
    },
    /// The lease is gone, for good: lost never turns back into held.
    Lost(LossReason),
    /// The holder released the lease.
    Released,
}

impl LeaseState {
    /// Whether the lease is held.
    pub fn is_held(self) -> bool {
        matches!(self, Self::Held { .. })
    }
}

/// How a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEnd {
    /// It was lost.
    Lost(LossReason),
    /// Its holder released it.
    Released,
}

impl fmt::Display for LeaseEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(reason) => write!(f, "lost: {reason}"),
            Self::Released => f.write_str("released by its holder"),
        }
    }
}

/// Why a lease was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// No renewal was confirmed before the local deadline: the lease was not to be renewed, the server was out
    /// of reach, too few replicas had it, or this process could not renew it.
    Expired,
    /// The server had the lease no more, before its time was over here: it lost the data of the lock, and
    /// another has had the lock since; or its clock was set forward.
    ///
    /// A force-release is told as this, too, if its message was lost.
    Gone,
    /// An operator force-released the lease.
    ForceReleased,
    /// The server has lost the data of the lock: the key was deleted or evicted, or the server
    /// restarted without it.
    DataLost,
    /// Another program has overwritten the key of the lock.
    Overwritten,
    /// The holder kept it for longer than its `max_hold`.
    MaxHold,
    /// The runtime was shut down while the lease was held.
    Shutdown,
    /// The task that renews leases ended: its tokio runtime stopped, or it panicked.
    WatchdogStopped,
    /// This process is a fork of the one that has the lease, which goes on there.
    Forked,
}

impl LossReason {
    /// Every reason, for metrics that start at zero.
    pub const ALL: &[Self] = &[
        Self::Expired,
        Self::Gone,
        Self::ForceReleased,
        Self::DataLost,
        Self::Overwritten,
        Self::MaxHold,
        Self::Shutdown,
        Self::WatchdogStopped,
        Self::Forked,
    ];

    /// The reason in words; for a lease that expired, with what is known of that.
    #[doc(hidden)]
    pub fn told(self, expiry: Option<Expiry>) -> String {
        match expiry {
            None => self.to_string(),
            Some(Expiry::AsPlanned) => "its time was over, and it was not to be renewed".into(),
            Some(Expiry::StoodStill(late)) => format!(
                "no renewal was sent in time, because this process stood still until {:?} after the end of the \
                 lease (blocking code in its async tasks: move it to spawn_blocking, or use own_thread(); or the \
                 process was stopped)",
                tenths(late)
            ),
        }
    }

    /// The reason as a metric label.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Gone => "gone",
            Self::ForceReleased => "force_released",
            Self::DataLost => "data_lost",
            Self::Overwritten => "overwritten",
            Self::MaxHold => "max_hold",
            Self::Shutdown => "shutdown",
            Self::WatchdogStopped => "watchdog_stopped",
            Self::Forked => "forked",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => {
                "no renewal was confirmed in time (it was not to be renewed, the server was out of reach, too few replicas had it, or this process did not renew it: it stood still, had no file descriptors, or nothing drove its tokio runtime)"
            }
            Self::Gone => {
                "the server had it no more (another has had the lock since data was lost, the clock of the server was set forward, or a force-release was not heard)"
            }
            Self::ForceReleased => "an operator force-released it",
            Self::DataLost => "the server has lost the data of the lock",
            Self::Overwritten => "another program has overwritten the key of the lock",
            Self::MaxHold => "it was held longer than its max_hold",
            Self::Shutdown => "the runtime was shut down",
            Self::WatchdogStopped => "the task that renews leases has stopped",
            Self::Forked => "this process is a fork of the one that has it",
        })
    }
}

/// Why a lease expired, where that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Its holder wanted it for one ttl.
    AsPlanned,
    /// What renews it stood still: its end was seen so much too late.
    StoodStill(Duration),
}

/// How long before the server does a holder treat its lease as ended: 2 ms or 1 % of the ttl,
/// whichever is greater.
///
/// It covers clocks whose rates differ by up to 1 %, and Redis' granularity when it expires keys
/// (compare the drift of
/// [Redlock](https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/)).
pub fn margin(ttl: Duration) -> Duration {
    (ttl / 100).max(Duration::from_millis(2))
}

/// Until when a lease may be believed that had `remaining` left in the answer to a request.
///
/// It counts from `sent_at`, *before* the request was sent. The server set the expiry later, so
/// belief always ends before the server's lease does.
pub fn believed_until(sent_at: Instant, remaining: Duration) -> Instant {
    sent_at + remaining.saturating_sub(margin(remaining))
}

/// The life of one lease, as its holder sees it.
///
/// Every method takes the present instant, looks at the deadlines first and returns the state
/// afterwards. Call [`observe`](Self::observe) before any use of the lease; report answers with
/// the instant their request was *sent*. Transitions only go from held to lost or released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRules {
    /// The end of belief, whatever `max_hold` says.
    belief: Instant,
    ends_at: Option<Instant>,
    /// Whether it has the time that its holder wants, if it is not to be renewed for longer.
    is_complete: Option<bool>,
    end: Option<LeaseEnd>,
    /// How long after the end of belief it was seen to have expired.
    late: Duration,
}

impl LeaseRules {
    /// A lease that is believed until `until`, and ends at `ends_at` at the latest (`max_hold`).
    pub fn new(until: Instant, ends_at: Option<Instant>) -> Self {
        Self { belief: until, ends_at, is_complete: None, end: None, late: Duration::ZERO }
    }

    /// The same lease, which is not to be renewed, or once if it is shorter than its holder wants.
    #[must_use]
    pub fn fixed(self, is_short: bool) -> Self {
        Self { is_complete: Some(!is_short), ..self }
    }

    /// Until when the next holder of the turn may believe in it, whatever `max_hold` says.
    pub fn belief(&self) -> Instant {
        self.belief
    }

    /// The state as it was last seen, without a look at the clock.
    pub fn present(&self) -> LeaseState {
        match self.end {
            None => LeaseState::Held { until: self.until() },
            Some(LeaseEnd::Lost(reason)) => LeaseState::Lost(reason),
            Some(LeaseEnd::Released) => LeaseState::Released,
        }
    }

    /// The state at `now`: a deadline that has passed is a loss.
    pub fn observe(&mut self, now: Instant) -> LeaseState {
        if self.end.is_none() && now >= self.until() {
            // The deadline that passed says which one it was: `max_hold` or the end of belief.
            let is_max_hold = self.ends_at == Some(self.until());
            let reason = if is_max_hold { LossReason::MaxHold } else { LossReason::Expired };
            self.late =
                if is_max_hold { Duration::ZERO } else { now.saturating_since(self.belief) };
            self.end = Some(LeaseEnd::Lost(reason));
        }
        self.present()
    }

    /// Why it expired, if that is known.
    pub fn expiry(&self) -> Option<Expiry> {
        if self.end != Some(LeaseEnd::Lost(LossReason::Expired)) {
            return None;
        }
        if self.is_complete == Some(true) {
            return Some(Expiry::AsPlanned);
        }
        (self.late >= STOOD_STILL).then_some(Expiry::StoodStill(self.late))
    }

    /// A renewal or hold sent at `sent_at` was answered with `remaining`.
    pub fn extended(&mut self, now: Instant, sent_at: Instant, remaining: Duration) -> LeaseState {
        if self.observe(now).is_held() {
            // The later of the two: answers may arrive out of order.
            self.belief = self.belief.max(believed_until(sent_at, remaining));
            self.is_complete = self.is_complete.map(|_| true);
        }
        self.observe(now)
    }

    /// The lease is lost for `reason`, unless it had ended before.
    pub fn lose(&mut self, now: Instant, reason: LossReason) -> LeaseState {
        if self.observe(now).is_held() {
            self.end = Some(LeaseEnd::Lost(reason));
        }
        self.present()
    }

    /// The holder releases the lease; returns the state before that.
    pub fn release(&mut self, now: Instant) -> LeaseState {
        let before = self.observe(now);
        if before.is_held() {
            self.end = Some(LeaseEnd::Released);
        }
        before
    }

    /// When to look again if nothing happens: the nearest deadline of a held lease.
    pub fn deadline(&self) -> Option<Instant> {
        self.end.is_none().then(|| self.until())
    }

    /// The end of belief that the holder has.
    fn until(&self) -> Instant {
        self.ends_at.map_or(self.belief, |at| at.min(self.belief))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    #[test]
    fn belief_ends_at_the_deadline_and_never_returns() {
        let mut lease = LeaseRules::new(at(100), None);
        assert_eq!(lease.observe(at(99)), LeaseState::Held { until: at(100) });
        assert_eq!(lease.observe(at(100)), LeaseState::Lost(LossReason::Expired));
        let late = lease.extended(at(101), at(99), Duration::from_secs(10));
        assert_eq!(late, LeaseState::Lost(LossReason::Expired));
        assert_eq!(lease.lose(at(102), LossReason::Gone), LeaseState::Lost(LossReason::Expired));
        assert_eq!(lease.release(at(103)), LeaseState::Lost(LossReason::Expired));
        assert_eq!(lease.deadline(), None);
    }

    #[test]
    fn an_end_that_nobody_saw_in_time_is_that_of_a_process_that_stood_still() {
        for (seen, stood_still) in
            [(100, None), (599, None), (600, Some(500)), (2_100, Some(2_000))]
        {
            let mut lease = LeaseRules::new(at(100), None);
            assert!(!lease.observe(at(seen)).is_held());
            let told = stood_still.map(|late| Expiry::StoodStill(Duration::from_millis(late)));
            assert_eq!(lease.expiry(), told, "{seen}");
        }
        let mut bounded = LeaseRules::new(at(100), Some(at(50)));
        assert_eq!(bounded.observe(at(5_000)), LeaseState::Lost(LossReason::MaxHold));
        assert_eq!(bounded.expiry(), None);
    }

    #[test]
    fn a_lease_that_was_not_to_be_renewed_ends_as_planned() {
        for seen in [100, 2_100] {
            let mut lease = LeaseRules::new(at(100), None).fixed(false);
            assert_eq!(lease.expiry(), None);
            assert_eq!(lease.observe(at(seen)), LeaseState::Lost(LossReason::Expired));
            assert_eq!(lease.expiry(), Some(Expiry::AsPlanned));
            let told = LossReason::Expired.told(lease.expiry());
            assert_eq!(told, "its time was over, and it was not to be renewed");
        }
        let mut short = LeaseRules::new(at(100), None).fixed(true);
        let mut unrenewed = short.clone();
        let _ =
            (unrenewed.observe(at(100)), short.extended(at(50), at(40), Duration::from_secs(1)));
        assert_eq!(unrenewed.expiry(), None);
        let _ = short.observe(at(2_000));
        assert_eq!(short.expiry(), Some(Expiry::AsPlanned));
        let mut gone = LeaseRules::new(at(100), None).fixed(false);
        assert_eq!(gone.lose(at(50), LossReason::Gone), LeaseState::Lost(LossReason::Gone));
        assert_eq!(gone.expiry(), None);
    }

    #[test]
    fn an_answer_extends_from_its_send_time_and_never_shortens() {
        let mut lease = LeaseRules::new(at(100), None);
        let state = lease.extended(at(50), at(40), Duration::from_millis(102));
        assert_eq!(state, LeaseState::Held { until: at(140) });
        let state = lease.extended(at(51), at(10), Duration::from_millis(102));
        assert_eq!(state, LeaseState::Held { until: at(140) });
    }

    #[test]
    fn max_hold_wins_over_renewals() {
        let mut lease = LeaseRules::new(at(100), Some(at(150)));
        let _ = lease.extended(at(90), at(90), Duration::from_secs(1));
        assert_eq!(lease.deadline(), Some(at(150)));
        assert_eq!(lease.observe(at(150)), LeaseState::Lost(LossReason::MaxHold));
    }

    #[test]
    fn a_lease_that_expired_before_its_max_hold_expired() {
        let mut lease = LeaseRules::new(at(100), Some(at(150)));
        assert_eq!(lease.observe(at(500)), LeaseState::Lost(LossReason::Expired));
    }

    #[test]
    fn a_release_tells_what_it_ended() {
        let mut lease = LeaseRules::new(at(100), None);
        assert!(lease.release(at(10)).is_held());
        assert_eq!(lease.release(at(11)), LeaseState::Released);
        assert_eq!(lease.lose(at(12), LossReason::Gone), LeaseState::Released);
        assert_eq!(lease.observe(at(1000)), LeaseState::Released);
    }

    #[test]
    fn the_margin_is_one_percent_but_never_below_two_milliseconds() {
        assert_eq!(margin(Duration::from_secs(30)), Duration::from_millis(300));
        assert_eq!(margin(Duration::from_millis(100)), Duration::from_millis(2));
    }

    #[test]
    fn belief_counts_from_the_send_time() {
        let sent_at = Instant::at(Duration::from_secs(1));
        let until = believed_until(sent_at, Duration::from_secs(10));
        assert_eq!(until, Instant::at(Duration::from_millis(10_900)));
        assert_eq!(believed_until(sent_at, Duration::from_millis(1)), sent_at);
    }
}
