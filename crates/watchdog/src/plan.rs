use std::time::Duration;

use leasehold_core::{Instant, SHORTEST_SILENCE, Ttl};

use crate::durations::SOON;

/// When one turn is due for renewal: a pure function of its ttl, of jitter and of earlier attempts.
///
/// Call [`occupied`](Self::occupied) for every holder. Sleep until [`wake_at`](Self::wake_at), call
/// [`sent`](Self::sent) before a renewal is sent, and [`confirmed`](Self::confirmed) or
/// [`unconfirmed`](Self::unconfirmed) when it ends. While one is in flight, no other is due.
#[derive(Debug, Clone)]
pub struct RenewalPlan {
    ttl: Ttl,
    renewing: Renewing,
    /// When a renewal is due; while one is in flight, the next, if that one is confirmed.
    next: Option<Instant>,
    is_in_flight: bool,
    /// Whether the turn was given its whole ttl, by its grant or by a renewal.
    had_its_ttl: bool,
}

/// Whether a turn is renewed for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewing {
    /// For as long as it is held.
    Always,
    /// Once, at the beginning, because the turn has less time left than the lease needs.
    Once,
    /// Never.
    Never,
}

impl RenewalPlan {
    /// A plan for a turn that no task holds yet.
    pub fn new(ttl: Ttl) -> Self {
        let (renewing, next) = (Renewing::Never, None);
        Self { ttl, renewing, next, is_in_flight: false, had_its_ttl: false }
    }

    /// A holder took over at `now`, who may believe until `until`.
    ///
    /// The first renewal falls into the first third of the ttl, or into the first half of the time
    /// that is left if that is less. A turn that lives for less than its ttl is renewed within
    /// 100 ms, in their last quarter: from then on its ttl counts. `fraction` lies in `[0, 1)` and
    /// spreads leases that were acquired together.
    pub fn occupied(&mut self, renewing: Renewing, now: Instant, until: Instant, fraction: f64) {
        self.renewing = renewing;
        if self.is_in_flight {
            return;
        }
        let left = until.saturating_since(now);
        self.had_its_ttl |= has_its_ttl(self.ttl, left);
        let latest = (self.ttl.get() / 3).min(left / 2);
        let (latest, spread) =
            if self.had_its_ttl { (latest, 1.0) } else { (latest.min(SOON), 0.25) };
        self.next = match renewing {
            Renewing::Never => None,
            Renewing::Once => Some(now),
            Renewing::Always => Some(match self.next {
                // The turn goes on with its plan.
                Some(next) if next <= now + latest => next,
                _ => now + latest.mul_f64(1.0 - spread * fraction),
            }),
        };
    }

    /// When to check the turn again after `now`, if it ends at `deadline` without a renewal.
    pub fn wake_at(&self, now: Instant, deadline: Instant) -> Instant {
        let next = self.next.filter(|next| !self.is_in_flight || *next > now);
        next.map_or(deadline, |next| next.min(deadline))
    }

    /// How long ago a renewal was due, if one is due or nearly so.
    ///
    /// A hundredth of the ttl ahead counts as due, so that neighbours share a command.
    pub fn due_for(&self, now: Instant) -> Option<Duration> {
        let next = self.next.filter(|_| !self.is_in_flight)?;
        (next <= now + self.ttl.get() / 100).then(|| now.saturating_since(next))
    }

    /// For how long the answer to a renewal is awaited, with this much of the turn left.
    ///
    /// A sixth of the ttl; half of what is left when that is less than half of the ttl, so that
    /// there is time to ask again. But at least 100 ms, or the sixth if it is shorter: a command
    /// that times out may cost its connection, and a slow answer should not.
    pub fn patience(&self, left: Duration) -> Duration {
        let sixth = self.ttl.get() / 6;
        let patience = if left < 3 * sixth { left / 2 } else { sixth };
        patience.clamp(sixth.min(SHORTEST_SILENCE), sixth)
    }

    /// A renewal is sent at `now`.
    ///
    /// The next one follows after a third of the ttl, less up to a twentieth of that, and is
    /// planned now: nearly every answer confirms, and then changes nothing in the order of turns.
    pub fn sent(&mut self, now: Instant, fraction: f64) {
        self.next = Some(now + (self.ttl.get() / 3).mul_f64(1.0 - fraction / 20.0));
        self.is_in_flight = true;
    }

    /// The turn was extended.
    pub fn confirmed(&mut self) {
        self.had_its_ttl = true;
        self.next = self.next.filter(|_| self.renewing == Renewing::Always);
        self.is_in_flight = false;
    }

    /// At `now` it is unknown whether the turn was extended.
    ///
    /// It is tried again within a twelfth of the ttl, or half of what is left until `until` if
    /// that is less: several attempts fit before the deadline.
    pub fn unconfirmed(&mut self, now: Instant, until: Instant, fraction: f64) {
        let ttl = self.ttl.get();
        // A least pause, so that the last attempts before a deadline are not too many.
        let latest = (ttl / 12).min(until.saturating_since(now) / 2).max(ttl / 100);
        let next = now + latest.mul_f64(1.0 - fraction / 2.0);
        self.is_in_flight = false;
        self.next = (self.renewing != Renewing::Never).then_some(next);
    }
}

/// Whether a turn that has so much time left lives for its ttl, or nearly so.
fn has_its_ttl(ttl: Ttl, left: Duration) -> bool {
    left >= ttl.get().mul_f64(0.9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn plan(renewing: Renewing, left: u64, fraction: f64) -> RenewalPlan {
        let mut plan = RenewalPlan::new(Ttl::new(Duration::from_secs(3)).unwrap());
        plan.occupied(renewing, at(0), at(left), fraction);
        plan
    }

    #[test]
    fn the_first_renewal_falls_into_the_first_third() {
        assert_eq!(plan(Renewing::Always, 2970, 0.0).wake_at(at(0), at(2970)), at(1000));
        assert_eq!(plan(Renewing::Always, 2970, 0.75).wake_at(at(0), at(2970)), at(250));
    }

    #[test]
    fn a_turn_that_lives_for_less_than_its_ttl_is_renewed_within_a_tenth_of_a_second() {
        for (left, fraction, due) in
            [(2000, 0.0, 100), (2000, 0.99, 75), (400, 0.0, 100), (60, 0.0, 30)]
        {
            let plan = plan(Renewing::Always, left, fraction);
            let at_least = at(due)..=at(due + 1);
            assert!(at_least.contains(&plan.wake_at(at(0), at(left))), "{left} {fraction}");
        }
    }

    #[test]
    fn a_turn_that_has_had_its_ttl_is_not_renewed_earlier_for_its_next_holder() {
        // From the start, or by a renewal.
        let mut long = plan(Renewing::Always, 2970, 0.0);
        let mut short = plan(Renewing::Always, 2000, 0.0);
        short.sent(at(100), 0.0);
        short.confirmed();
        for (plan, next) in [(&mut long, 1000), (&mut short, 1100)] {
            plan.occupied(Renewing::Always, at(600), at(2300), 0.0);
            assert_eq!(plan.wake_at(at(600), at(2300)), at(next));
        }
    }

    #[test]
    fn many_holders_of_a_short_turn_do_not_put_its_renewal_off() {
        let mut plan = plan(Renewing::Always, 2000, 0.0);
        for now in 1..10 {
            plan.occupied(Renewing::Always, at(now * 10), at(2000), 0.0);
        }
        assert_eq!(plan.wake_at(at(90), at(2000)), at(100));
    }

    #[test]
    fn the_next_holder_goes_on_with_the_plan() {
        let mut plan = plan(Renewing::Always, 2970, 0.0);
        plan.occupied(Renewing::Always, at(100), at(2970), 0.9);
        assert_eq!(plan.wake_at(at(300), at(2970)), at(1000));
        plan.occupied(Renewing::Never, at(200), at(2970), 0.9);
        assert_eq!(plan.wake_at(at(300), at(2970)), at(2970));
        plan.occupied(Renewing::Always, at(300), at(900), 0.0);
        assert_eq!(plan.wake_at(at(300), at(900)), at(600));
    }

    #[test]
    fn a_fixed_lease_is_renewed_once_where_it_has_to_be() {
        assert_eq!(plan(Renewing::Never, 2970, 0.5).wake_at(at(0), at(2970)), at(2970));
        let mut plan = plan(Renewing::Once, 400, 0.5);
        assert_eq!(plan.due_for(at(0)), Some(Duration::ZERO));
        plan.sent(at(0), 0.5);
        plan.confirmed();
        assert_eq!(plan.wake_at(at(300), at(2970)), at(2970));
    }

    #[test]
    fn an_unconfirmed_renewal_is_tried_again_before_the_deadline() {
        let mut plan = plan(Renewing::Always, 2970, 0.0);
        let (mut now, mut tries) = (1000, 0);
        // Every attempt takes its whole deadline, a sixth of the ttl, and fails.
        while now < 2970 {
            plan.sent(at(now), 0.5);
            tries += 1;
            plan.unconfirmed(at(now + 500), at(2970), 0.5);
            now = u64::try_from(plan.wake_at(at(0), at(9999)).since_origin().as_millis()).unwrap();
        }
        assert!(tries >= 3, "{tries} tries");
    }

    #[test]
    fn with_little_left_an_answer_is_not_awaited_for_long() {
        let plan = plan(Renewing::Always, 2970, 0.0);
        for (left, patience) in [(2970, 500), (1200, 500), (900, 450), (150, 100), (0, 100)] {
            assert_eq!(plan.patience(Duration::from_millis(left)).as_millis(), patience);
        }
    }

    #[test]
    fn a_confirmed_renewal_counts_from_its_send_time() {
        let mut plan = plan(Renewing::Always, 2970, 0.0);
        plan.sent(at(1000), 0.0);
        assert_eq!(plan.wake_at(at(1000), at(2970)), at(2000));
        plan.confirmed();
        assert_eq!(plan.wake_at(at(1300), at(3970)), at(2000));
    }

    #[test]
    fn a_grant_with_little_left_is_tried_again_before_it_ends() {
        let mut plan = plan(Renewing::Always, 300, 0.0);
        plan.sent(at(150), 0.0);
        plan.unconfirmed(at(151), at(300), 0.0);
        assert!(plan.wake_at(at(151), at(300)) < at(300));
    }

    #[test]
    fn a_turn_is_looked_at_while_its_renewal_is_on_its_way() {
        let mut plan = plan(Renewing::Always, 2970, 0.0);
        plan.sent(at(1000), 0.0);
        assert_eq!(plan.due_for(at(2000)), None);
        assert_eq!(plan.wake_at(at(1000), at(2970)), at(2000));
        assert_eq!(plan.wake_at(at(1000), at(1500)), at(1500));
        assert_eq!(plan.wake_at(at(2000), at(2970)), at(2970));
    }
}
