//! When the guard of a run ends the command's process group.

use std::time::Duration;

use leasehold::time::Instant;

use crate::durations::HEAD_START;

/// What the run tells its guard, a line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// When the grace begins, unless the lease is renewed, on the clock that both have: a guard that was
    /// stopped may read it late.
    Begins(Instant),
    /// The grace has begun: the run has sent SIGTERM.
    Ending,
}

impl Order {
    /// Reads a line.
    pub(super) fn read(line: &str) -> Option<Self> {
        match line.split_once(' ') {
            Some(("begins", at)) => {
                Some(Self::Begins(Instant::at(Duration::from_nanos(at.parse().ok()?))))
            }
            None if line == "ending" => Some(Self::Ending),
            _ => None,
        }
    }

    /// The line that tells it.
    pub(super) fn line(self) -> String {
        match self {
            Self::Begins(at) => format!("begins {}\n", at.since_origin().as_nanos()),
            Self::Ending => "ending\n".into(),
        }
    }
}

/// How patient a guard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// Between SIGTERM and SIGKILL.
    pub(super) grace: Duration,
    /// Between the end of the run's process and SIGKILL; zero within another run, whose grace may
    /// be over.
    pub(super) grace_of_orphans: Duration,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardDeed {
    /// Nothing until then, or until the run tells something.
    Wait(Option<Instant>),
    /// End the group: SIGTERM.
    Term,
    /// End the group: SIGKILL. Nothing is left to guard.
    Kill,
}

/// What the guard knows.
#[derive(Debug)]
pub(super) struct GuardWatch {
    patience: Patience,
    /// When the grace begins, unless the lease is renewed.
    begins: Option<Instant>,
    /// Since when the grace has begun, or the run is dead, and when the group is killed.
    ending: Option<Ending>,
}

#[derive(Debug, Clone, Copy)]
struct Ending {
    /// When to send SIGTERM, unless somebody has.
    term: Option<Instant>,
    kill: Instant,
}

impl GuardWatch {
    pub(super) fn new(patience: Patience) -> Self {
        Self { patience, begins: None, ending: None }
    }

    /// The run has told something.
    pub(super) fn on_order(&mut self, order: Order, now: Instant) {
        match order {
            // A renewal that is told too late does not bring the lease back.
            Order::Begins(_) if self.ending.is_some() => {}
            Order::Begins(at) => self.begins = Some(at),
            Order::Ending => {
                // This process may have slept meanwhile.
                let begins = self.begins.map_or(now, |begins| begins.min(now));
                self.ending = Some(Ending { term: None, kill: begins + self.patience.grace });
            }
        }
    }

    /// The run's process has ended, whatever it told before.
    pub(super) fn on_end_of_run(&mut self, now: Instant) {
        let kill = now + self.patience.grace_of_orphans;
        // The grace may have begun before.
        let kill = self.ending.map_or(kill, |ending| ending.kill.min(kill));
        self.ending = Some(Ending { term: Some(now), kill });
    }

    /// What to do; SIGTERM is sent once.
    pub(super) fn deed(&mut self, now: Instant) -> GuardDeed {
        if let Some(begins) = self.begins.filter(|begins| self.ending.is_none() && now >= *begins) {
            let head_start = HEAD_START.min(self.patience.grace / 2);
            self.ending = Some(Ending {
                term: Some(begins + head_start),
                kill: begins + self.patience.grace,
            });
        }
        let Some(ending) = &mut self.ending else { return GuardDeed::Wait(self.begins) };
        if now >= ending.kill {
            return GuardDeed::Kill;
        }
        if ending.term.take_if(|term| now >= *term).is_some() {
            return GuardDeed::Term;
        }
        GuardDeed::Wait(Some(ending.term.map_or(ending.kill, |term| term.min(ending.kill))))
    }

    /// Whether the group is being ended, and may be gone at any moment.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Of a lease whose grace begins at 1000.
    fn watch(grace: u64) -> GuardWatch {
        let mut watch = GuardWatch::new(Patience { grace: ms(grace), grace_of_orphans: ms(grace) });
        watch.on_order(Order::Begins(at(1000)), at(0));
        watch
    }

    #[test]
    fn orders_are_read_as_they_were_written() {
        for order in [Order::Begins(at(3)), Order::Ending] {
            assert_eq!(Order::read(order.line().trim_end()), Some(order));
        }
        for odd in ["begins x", "begins", "ending 1", ""] {
            assert_eq!(Order::read(odd), None);
        }
    }

    #[test]
    fn a_renewed_lease_is_left_alone() {
        let mut watch = watch(500);
        assert_eq!(watch.deed(at(999)), GuardDeed::Wait(Some(at(1000))));
        watch.on_order(Order::Begins(at(1999)), at(999));
        assert_eq!(watch.deed(at(1500)), GuardDeed::Wait(Some(at(1999))));
    }

    #[test]
    fn a_run_that_stands_still_past_its_lease_is_ended_within_the_grace() {
        let mut watch = watch(500);
        assert_eq!(watch.deed(at(1000)), GuardDeed::Wait(Some(at(1050))));
        assert_eq!(watch.deed(at(1050)), GuardDeed::Term);
        // A renewal that is told too late does not bring the lease back.
        watch.on_order(Order::Begins(at(2100)), at(1100));
        assert_eq!(watch.deed(at(1100)), GuardDeed::Wait(Some(at(1500))));
        watch.on_order(Order::Ending, at(1400));
        assert_eq!(watch.deed(at(1400)), GuardDeed::Wait(Some(at(1500))));
        assert_eq!(watch.deed(at(1500)), GuardDeed::Kill);
    }

    #[test]
    fn a_guard_that_was_late_kills_at_once() {
        assert_eq!(watch(500).deed(at(9000)), GuardDeed::Kill);
        assert_eq!(watch(0).deed(at(1000)), GuardDeed::Kill);
    }

    #[test]
    fn what_a_stopped_guard_reads_late_counts_from_when_it_was_told() {
        let mut watch = watch(500);
        watch.on_order(Order::Begins(at(1200)), at(9000));
        assert_eq!(watch.deed(at(9000)), GuardDeed::Kill);
    }

    #[test]
    fn a_pause_of_the_whole_machine_is_a_part_of_the_grace() {
        let mut watch = watch(500);
        watch.on_order(Order::Ending, at(9000));
        assert_eq!(watch.deed(at(9000)), GuardDeed::Kill);
    }

    #[test]
    fn a_killed_run_is_followed_at_once() {
        let mut watch = watch(500);
        watch.on_end_of_run(at(10));
        assert_eq!(watch.deed(at(10)), GuardDeed::Term);
        assert_eq!(watch.deed(at(10)), GuardDeed::Wait(Some(at(510))));
        assert_eq!(watch.deed(at(510)), GuardDeed::Kill);
    }

    #[test]
    fn within_another_run_a_killed_run_has_no_grace() {
        let patience = Patience { grace: ms(500), grace_of_orphans: ms(0) };
        let mut watch = GuardWatch::new(patience);
        watch.on_end_of_run(at(10));
        assert_eq!(watch.deed(at(10)), GuardDeed::Kill);
    }

    #[test]
    fn a_run_that_ends_its_command_itself_has_the_grace_for_it() {
        let mut watch = watch(500);
        watch.on_order(Order::Ending, at(100));
        assert_eq!(watch.deed(at(100)), GuardDeed::Wait(Some(at(600))));
        watch.on_end_of_run(at(200));
        assert_eq!(watch.deed(at(200)), GuardDeed::Term);
        assert_eq!(watch.deed(at(600)), GuardDeed::Kill);
    }

    #[test]
    fn a_run_that_is_killed_before_it_tells_anything_is_followed() {
        let mut watch = GuardWatch::new(Patience { grace: ms(1), grace_of_orphans: ms(1) });
        assert_eq!(watch.deed(at(0)), GuardDeed::Wait(None));
        watch.on_end_of_run(at(1));
        assert_eq!(watch.deed(at(1)), GuardDeed::Term);
    }
}
