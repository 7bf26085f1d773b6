use std::time::Duration;

use leasehold::LockName;
use leasehold_core::seam::Part;
use leasehold_testkit::sim::{Dice, Drift, Fall, Forsaken, Layout, Weather};

use super::kind::{Kind, MishapPlan};

/// All that a seed decides before the world begins to turn.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    pub(crate) layout: Layout,
    /// How many replicas the runtimes ask to acknowledge what they believe.
    pub(crate) asks: u8,
    /// How long a command waits for them.
    pub(crate) acks_within: Duration,
    pub(crate) processes: Vec<ProcessPlan>,
    pub(crate) names: Vec<LockName>,
    pub(crate) ttls: [Duration; 2],
    pub(crate) claim_window: Duration,
    pub(crate) command_timeout: Duration,
    /// For how many quarters of the ttl runtimes keep locks idle.
    pub(crate) kept_quarters: u32,
    pub(crate) weather: Weather,
    pub(crate) habits: Habits,
    /// For how long the tasks work before they come to an end.
    pub(crate) span: Duration,
    /// What happens meanwhile, in order.
    pub(crate) acts: Vec<(Duration, Act)>,
    /// What goes wrong with single messages: from when on, for how long it may, and what.
    pub(crate) mishaps: Vec<(Duration, Duration, MishapPlan)>,
}

/// One process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessPlan {
    pub(crate) drift: Drift,
    pub(crate) workers: u64,
}

/// Something that happens to a process or to the servers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Crash { process: usize },
    Restart { like: usize },
    Pause { process: usize, time: Duration },
    Cut { process: usize, time: Duration },
    Unsubscribe { process: usize },
    Flush,
    ForceRelease { name: usize },
    Lose { name: usize, part: Part },
    Mislead { process: usize, time: Duration },
    Stall { time: Duration },
    Fall { fall: Fall },
    Wake,
    Promote { is_any: bool, slowness: Duration, forsaken: Forsaken },
    Rejoin,
    BeginMove { name: usize, to: usize },
    Tear { name: usize },
    MoveKeys { name: usize },
    EndMove { name: usize, slowness: Duration },
    Leave { node: usize },
    Doze,
}

/// How often tasks do what, in a million; and how long they think and hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Habits {
    pub(crate) tries: u64,
    pub(crate) cancels: u64,
    pub(crate) forgets: u64,
    pub(crate) joins: u64,
    pub(crate) reenters: u64,
    pub(crate) drops: u64,
    pub(crate) half_releases: u64,
    pub(crate) unrenewed: u64,
    pub(crate) max_holds: u64,
    pub(crate) minimums: u64,
    pub(crate) writes: u64,
    pub(crate) other_ttls: u64,
    pub(crate) late_polls: u64,
    pub(crate) latest_poll: Duration,
    pub(crate) longest_think: Duration,
    pub(crate) longest_hold: Duration,
}

/// In half of the seeds locks are kept idle. Three quarters leave what a task needs to enter.
fn drawn_quarters(seed: u64) -> u32 {
    // Dice of their own: the other decisions of a seed stay what they were.
    Dice::new(seed ^ 0x6b65_6570).pick(&[0, 0, 0, 1, 2, 3])
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let dice = Dice::new(seed ^ 0x706c_616e);
        let names = dice.pick(&[1, 1, 1, 2, 3]);
        let names = (0..names).map(|n| LockName::new(format!("orders/{n}")).unwrap()).collect();
        let claim_window = millis(dice.pick(&[60, 100, 400]));
        let ttl = claim_window.max(millis(dice.pick(&[200, 500, 1_000])));
        let ttls = [ttl, ttl * 2];
        let processes: Vec<_> = (0..dice.from_to(2, 4)).map(|_| process(&dice)).collect();
        let span = dice.time(millis(600), millis(2_500));
        let calm = dice.below(5) == 0;
        let weather = if calm {
            Weather::calm()
        } else {
            Weather::drawn(&dice, dice.pick(&[ttl / 2, ttl * 2, ttl * 4]))
        };
        let mut habits = Habits::drawn(&dice, ttl);
        // Dice of their own: the other seeds stay what they were.
        let own_dice = Dice::new(seed ^ 0x6d69_6e69_6d75_6d73);
        if own_dice.below(3) == 0 {
            habits.minimums = own_dice.from_to(20_000, 400_000);
        }
        let mut plan = Self {
            seed,
            kind: Kind::Storm,
            layout: Layout::One,
            asks: 0,
            acks_within: Duration::ZERO,
            processes,
            names,
            ttls,
            claim_window,
            command_timeout: millis(dice.pick(&[40, 100, 200])),
            kept_quarters: drawn_quarters(seed),
            weather,
            habits,
            span,
            acts: Vec::new(),
            mishaps: Vec::new(),
        };
        if !calm {
            plan.draw_acts(&dice);
        }
        // Dice of their own, for the same reason.
        let kind_dice = Dice::new(seed ^ 0x6b69_6e64);
        plan.become_kind(Kind::of(seed, &kind_dice), &kind_dice);
        plan
    }

    /// Whether nothing goes wrong from the beginning to the end.
    pub(crate) fn is_calm(&self) -> bool {
        self.weather.is_calm() && self.acts.is_empty() && self.mishaps.is_empty()
    }

    /// Whether one message goes wrong at a time, and all who ask stay and are polled.
    pub(crate) fn is_steady(&self) -> bool {
        matches!(self.kind, Kind::Steady(..) | Kind::Cluster { is_calm: true })
    }

    /// For how long runtimes keep locks idle.
    pub(crate) fn keep_idle(&self) -> Duration {
        self.ttls[0] / 4 * self.kept_quarters
    }

    /// For how long a lock stays idle at most, by a clock that runs at another rate.
    pub(crate) fn longest_idle(&self) -> Duration {
        self.keep_idle() + self.keep_idle() / 10
    }

    /// How many tasks there are.
    pub(crate) fn workers(&self) -> u64 {
        self.processes.iter().map(|process| process.workers).sum()
    }

    fn draw_acts(&mut self, dice: &Dice) {
        let longest = self.ttls[1];
        for process in 0..self.processes.len() {
            let mut add = |one_in: u64, make: &dyn Fn() -> Act| {
                if dice.below(one_in) == 0 {
                    self.acts.push((dice.time(Duration::ZERO, self.span), make()));
                }
            };
            add(4, &|| Act::Crash { process });
            add(6, &|| Act::Restart { like: process });
            let time = || dice.spread(millis(1), longest);
            add(2, &|| Act::Pause { process, time: time() });
            add(3, &|| Act::Cut { process, time: time() });
            add(3, &|| Act::Unsubscribe { process });
        }
        for name in 0..self.names.len() {
            if dice.below(6) == 0 {
                let at = dice.time(Duration::ZERO, self.span);
                self.acts.push((at, Act::ForceRelease { name }));
            }
        }
        if dice.below(8) == 0 {
            self.acts.push((dice.time(Duration::ZERO, self.span), Act::Flush));
        }
        self.acts.sort_by_key(|(at, _)| *at);
    }
}

impl Habits {
    /// Tasks that ask, hold, and give back.
    pub(crate) fn none() -> Self {
        Self {
            tries: 0,
            cancels: 0,
            forgets: 0,
            joins: 0,
            reenters: 0,
            drops: 0,
            half_releases: 0,
            unrenewed: 0,
            max_holds: 0,
            minimums: 0,
            writes: 0,
            other_ttls: 0,
            late_polls: 0,
            latest_poll: Duration::ZERO,
            longest_think: millis(1),
            longest_hold: millis(1),
        }
    }

    fn drawn(dice: &Dice, ttl: Duration) -> Self {
        let rate = |most: u64| if dice.below(2) == 0 { 0 } else { dice.below(most) };
        Self {
            tries: rate(400_000),
            cancels: rate(500_000),
            forgets: rate(300_000),
            joins: rate(300_000),
            reenters: rate(500_000),
            drops: rate(500_000),
            half_releases: rate(400_000),
            unrenewed: rate(700_000),
            max_holds: rate(200_000),
            minimums: 0,
            writes: dice.from_to(200_000, 900_000),
            other_ttls: rate(500_000),
            late_polls: 0,
            latest_poll: Duration::ZERO,
            longest_think: dice.pick(&[millis(1), millis(10), millis(100)]),
            longest_hold: dice.pick(&[millis(1), millis(20), millis(80), ttl, ttl * 2]),
        }
    }
}

/// A process whose clock is ahead by something, and off by at most 0.9 %.
fn process(dice: &Dice) -> ProcessPlan {
    let rate = dice.pick(&[991_000, 1_000_000, 1_009_000, dice.from_to(991_000, 1_009_000)]);
    let drift = Drift::new(dice.time(Duration::ZERO, millis(10_000)), rate);
    ProcessPlan { drift, workers: dice.pick(&[1, 1, 2, 3, 4]) }
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
