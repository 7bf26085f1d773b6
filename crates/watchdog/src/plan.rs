use leasehold_core::{Instant, Ttl};

/// When one lease is due for renewal: a pure function of its ttl, jitter and what came of attempts.
///
/// Ask [`wake_at`](Self::wake_at), and when that time has come call [`sent`](Self::sent) before a
/// renewal goes out and [`answered`](Self::answered) when its outcome is known. While one is on
/// its way no other is due.
#[derive(Debug, Clone)]
pub struct RenewalPlan {
    ttl: Ttl,
    next: Option<Instant>,
    in_flight: bool,
}

/// What a renewal attempt came to, as far as the plan is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The lease was extended.
    Confirmed,
    /// It may or may not have been extended: try again soon, until the deadline.
    Unconfirmed,
}

impl RenewalPlan {
    /// A plan whose first renewal falls evenly into the first third of the ttl.
    ///
    /// `fraction` lies in `[0, 1)`. Leases that were acquired together so part company.
    pub fn new(now: Instant, ttl: Ttl, fraction: f64) -> Self {
        let next = now + (ttl.get() / 3).mul_f64(1.0 - fraction);
        Self { ttl, next: Some(next), in_flight: false }
    }

    /// A plan for a lease that is not renewed.
    pub fn never(ttl: Ttl) -> Self {
        Self { ttl, next: None, in_flight: false }
    }

    /// When to look at the lease again, if it ends at `deadline` otherwise.
    pub fn wake_at(&self, deadline: Instant) -> Instant {
        match self.next {
            Some(next) if !self.in_flight => next.min(deadline),
            _ => deadline,
        }
    }

    /// How long ago a renewal was due, if one is due or nearly so.
    ///
    /// A hundredth of the ttl ahead counts, so that neighbours travel in one command.
    pub fn due_for(&self, now: Instant) -> Option<std::time::Duration> {
        let next = self.next.filter(|_| !self.in_flight)?;
        (next <= now + self.ttl.get() / 100).then(|| now.saturating_since(next))
    }

    /// A renewal goes out.
    pub fn sent(&mut self) {
        self.in_flight = true;
    }

    /// The renewal that was sent at `sent_at` came to `attempt` at `now`.
    ///
    /// The next one follows after a third of the ttl less up to a tenth of that, or after an
    /// unconfirmed one within a twelfth: several attempts fit before the deadline.
    pub fn answered(&mut self, now: Instant, sent_at: Instant, attempt: Attempt, fraction: f64) {
        let ttl = self.ttl.get();
        self.in_flight = false;
        self.next = Some(match attempt {
            Attempt::Confirmed => sent_at + (ttl / 3).mul_f64(1.0 - fraction / 10.0),
            Attempt::Unconfirmed => now + (ttl / 12).mul_f64(1.0 - fraction / 2.0),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn ttl() -> Ttl {
        Ttl::new(Duration::from_secs(3)).unwrap()
    }

    #[test]
    fn the_first_renewal_falls_into_the_first_third() {
        assert_eq!(RenewalPlan::new(at(0), ttl(), 0.0).wake_at(at(2970)), at(1000));
        assert_eq!(RenewalPlan::new(at(0), ttl(), 0.75).wake_at(at(2970)), at(250));
        assert_eq!(RenewalPlan::never(ttl()).wake_at(at(2970)), at(2970));
    }

    #[test]
    fn nothing_is_due_while_one_is_on_its_way() {
        let mut plan = RenewalPlan::new(at(0), ttl(), 0.0);
        assert_eq!(plan.due_for(at(900)), None);
        assert_eq!(plan.due_for(at(970)), Some(Duration::ZERO));
        assert_eq!(plan.due_for(at(1005)), Some(Duration::from_millis(5)));
        plan.sent();
        assert_eq!(plan.due_for(at(1500)), None);
        assert_eq!(plan.wake_at(at(2970)), at(2970));
    }

    #[test]
    fn an_unconfirmed_renewal_is_tried_again_before_the_deadline() {
        let mut plan = RenewalPlan::new(at(0), ttl(), 0.0);
        let (mut now, mut tries) = (1000, 0);
        // Every attempt takes its whole deadline, a sixth of the ttl, and fails.
        while now < 2970 {
            plan.sent();
            tries += 1;
            plan.answered(at(now + 500), at(now), Attempt::Unconfirmed, 0.5);
            now = u64::try_from(plan.wake_at(at(9999)).since_origin().as_millis()).unwrap();
        }
        assert!(tries >= 3, "{tries} tries");
    }

    #[test]
    fn a_confirmed_renewal_counts_from_its_send_time() {
        let mut plan = RenewalPlan::new(at(0), ttl(), 0.0);
        plan.sent();
        plan.answered(at(1300), at(1000), Attempt::Confirmed, 0.0);
        assert_eq!(plan.wake_at(at(9999)), at(2000));
    }
}
