//! When the guard of a run ends the command's process group.

use std::{str::FromStr, time::Duration};

use leasehold::time::Instant;

/// What the run tells its guard, a line each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// How long the lease is held without another renewal.
    Left(Duration),
    /// The lease is lost: the run has sent SIGTERM, and waits for the grace.
    Lost,
    /// The command has ended, or was never begun.
    Over,
}

impl Order {
    /// The line that tells it.
    pub(super) fn line(self) -> String {
        match self {
            Self::Left(left) => format!("left {}\n", left.as_millis()),
            Self::Lost => "lost\n".into(),
            Self::Over => "over\n".into(),
        }
    }
}

impl FromStr for Order {
    type Err = ();

    fn from_str(line: &str) -> Result<Self, ()> {
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "left" => {
                value.parse().map(|left| Self::Left(Duration::from_millis(left))).map_err(drop)
            }
            "lost" => Ok(Self::Lost),
            "over" => Ok(Self::Over),
            _ => Err(()),
        }
    }
}

/// How patient a guard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Patience {
    /// Between the loss of the lease and SIGKILL.
    pub(super) grace: Duration,
    /// Between the end of the run's process and SIGKILL; zero within another run, whose grace may
    /// be over.
    pub(super) grace_of_orphans: Duration,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// Nothing until then, or until the run tells something.
    Wait(Option<Instant>),
    /// End the group: SIGTERM.
    Term(i32),
    /// End the group: SIGKILL.
    Kill(i32),
    /// There is nothing left to guard.
    Leave,
}

/// What the guard knows.
#[derive(Debug)]
pub(super) struct Watch {
    patience: Patience,
    /// The process group of the command.
    group: i32,
    /// When the lease ends unless it is renewed.
    ends: Option<Instant>,
    /// Since when the lease is lost, or the run is dead, and when the group is killed.
    lost: Option<Lost>,
    is_over: bool,
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    /// When to send SIGTERM, unless somebody has.
    term: Option<Instant>,
    kill: Instant,
}

impl Watch {
    /// The run notices the end of a lease at the same moment as its guard: it goes first.
    const HEAD_START: Duration = Duration::from_millis(50);

    pub(super) fn new(patience: Patience, group: i32) -> Self {
        Self { patience, group, ends: None, lost: None, is_over: false }
    }

    /// The run has told something.
    pub(super) fn on_order(&mut self, order: Order, now: Instant) {
        match order {
            Order::Left(left) => self.ends = Some(now + left),
            Order::Lost => self.lost = Some(Lost { term: None, kill: now + self.patience.grace }),
            Order::Over => self.is_over = true,
        }
    }

    /// The run's process has ended, whatever it told before.
    pub(super) fn on_end_of_run(&mut self, now: Instant) {
        let kill = now + self.patience.grace_of_orphans;
        // A run that had lost its lease has used up some of the grace.
        let kill = self.lost.map_or(kill, |lost| lost.kill.min(kill));
        self.lost = Some(Lost { term: Some(now), kill });
    }

    /// What to do; each signal is sent once.
    pub(super) fn deed(&mut self, now: Instant) -> Deed {
        if self.is_over {
            return Deed::Leave;
        }
        if let Some(ends) = self.ends.filter(|ends| self.lost.is_none() && now >= *ends) {
            let head_start = Self::HEAD_START.min(self.patience.grace / 2);
            self.lost =
                Some(Lost { term: Some(ends + head_start), kill: ends + self.patience.grace });
        }
        let Some(lost) = &mut self.lost else { return Deed::Wait(self.ends) };
        if now >= lost.kill {
            self.is_over = true;
            return Deed::Kill(self.group);
        }
        if lost.term.take_if(|term| now >= *term).is_some() {
            return Deed::Term(self.group);
        }
        Deed::Wait(Some(lost.term.map_or(lost.kill, |term| term.min(lost.kill))))
    }

    /// The process group of the command.
    pub(super) fn group(&self) -> i32 {
        self.group
    }

    /// Whether the group is being ended, and may be gone at any moment.
    pub(super) fn is_ending(&self) -> bool {
        self.lost.is_some()
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

    /// Of a lease that is held until 1000.
    fn watch(grace: u64) -> Watch {
        let mut watch = Watch::new(Patience { grace: ms(grace), grace_of_orphans: ms(grace) }, 7);
        watch.on_order(Order::Left(ms(1000)), at(0));
        watch
    }

    #[test]
    fn orders_are_read_as_they_were_written() {
        for order in [Order::Left(ms(3)), Order::Lost, Order::Over] {
            assert_eq!(order.line().trim_end().parse(), Ok(order));
        }
        assert_eq!("left x".parse::<Order>(), Err(()));
    }

    #[test]
    fn a_renewed_lease_is_left_alone() {
        let mut watch = watch(500);
        assert_eq!(watch.deed(at(999)), Deed::Wait(Some(at(1000))));
        watch.on_order(Order::Left(ms(1000)), at(999));
        assert_eq!(watch.deed(at(1500)), Deed::Wait(Some(at(1999))));
    }

    #[test]
    fn a_run_that_stands_still_past_its_lease_is_ended_within_the_grace() {
        let mut watch = watch(500);
        assert_eq!(watch.deed(at(1000)), Deed::Wait(Some(at(1050))));
        assert_eq!(watch.deed(at(1050)), Deed::Term(7));
        // A renewal that is told too late does not bring the lease back.
        watch.on_order(Order::Left(ms(1000)), at(1100));
        assert_eq!(watch.deed(at(1100)), Deed::Wait(Some(at(1500))));
        assert_eq!(watch.deed(at(1500)), Deed::Kill(7));
        assert_eq!(watch.deed(at(1501)), Deed::Leave);
    }

    #[test]
    fn a_guard_that_was_late_kills_at_once() {
        assert_eq!(watch(500).deed(at(9000)), Deed::Kill(7));
        assert_eq!(watch(0).deed(at(1000)), Deed::Kill(7));
    }

    #[test]
    fn a_killed_run_is_followed_at_once() {
        let mut watch = watch(500);
        watch.on_end_of_run(at(10));
        assert_eq!(watch.deed(at(10)), Deed::Term(7));
        assert_eq!(watch.deed(at(10)), Deed::Wait(Some(at(510))));
        assert_eq!(watch.deed(at(510)), Deed::Kill(7));
    }

    #[test]
    fn within_another_run_a_killed_run_has_no_grace() {
        let patience = Patience { grace: ms(500), grace_of_orphans: ms(0) };
        let mut watch = Watch::new(patience, 7);
        watch.on_end_of_run(at(10));
        assert_eq!(watch.deed(at(10)), Deed::Kill(7));
    }

    #[test]
    fn a_run_that_ends_its_command_itself_has_the_grace_for_it() {
        let mut watch = watch(500);
        watch.on_order(Order::Lost, at(100));
        assert_eq!(watch.deed(at(100)), Deed::Wait(Some(at(600))));
        watch.on_end_of_run(at(200));
        assert_eq!(watch.deed(at(200)), Deed::Term(7));
        assert_eq!(watch.deed(at(600)), Deed::Kill(7));
    }

    #[test]
    fn nothing_is_done_about_a_command_that_has_ended() {
        let mut ended = watch(500);
        ended.on_order(Order::Over, at(10));
        ended.on_end_of_run(at(11));
        assert_eq!(ended.deed(at(5000)), Deed::Leave);
    }

    #[test]
    fn a_run_that_is_killed_before_it_tells_anything_is_followed() {
        let mut watch = Watch::new(Patience { grace: ms(1), grace_of_orphans: ms(1) }, 7);
        assert_eq!(watch.deed(at(0)), Deed::Wait(None));
        watch.on_end_of_run(at(1));
        assert_eq!(watch.deed(at(1)), Deed::Term(7));
    }
}
