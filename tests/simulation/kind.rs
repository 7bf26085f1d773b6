use std::time::Duration;

use leasehold_core::seam::Part;
use leasehold_testkit::sim::{Dice, Fate, Mishap, Strikes, Weather};

use super::plan::{Act, Habits, Plan, millis};

/// What a run is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Much goes wrong at once, or nothing at all.
    Storm,
    /// The same with settings at their limits, lost keys, a replica that answers, and tasks that
    /// are polled late.
    Wild,
    /// Nothing goes wrong, but a round trip takes longer than the claim window. If one task is
    /// alone, and its acquires are answered within their time, it gets what it waits for.
    Slow { alone: bool },
    /// One message goes wrong at a time, and all who ask stay and are polled.
    Steady(Strikes, Fate),
    /// A storm over a master with replicas, some of which take over.
    Group,
    /// Slots of a Cluster move; in a storm, or all who ask stay and are polled.
    Cluster { is_calm: bool },
}

impl Kind {
    /// The kind of a seed: half of them are storms, on one server or several.
    pub(crate) fn of(seed: u64, dice: &Dice) -> Self {
        match seed % 8 {
            0 | 4 => Self::Storm,
            6 if seed % 32 == 6 => Self::Cluster { is_calm: true },
            6 if seed % 32 == 22 => Self::Cluster { is_calm: false },
            2 | 6 => Self::Group,
            1 | 5 => Self::Wild,
            3 => Self::Steady(strikes(dice), fate(dice)),
            _ if dice.below(2) == 0 => Self::Slow { alone: dice.below(3) == 0 },
            _ => Self::Steady(strikes(dice), fate(dice)),
        }
    }
}

fn strikes(dice: &Dice) -> Strikes {
    dice.pick(&[
        Strikes::FirstAsk,
        Strikes::FirstAsk,
        Strikes::Heartbeat,
        Strikes::Heartbeat,
        Strikes::QueueingRelease,
        Strikes::QueueingRelease,
        Strikes::LastRelease,
        Strikes::Push,
    ])
}

fn fate(dice: &Dice) -> Fate {
    let time = dice.spread(millis(1), millis(3_000));
    dice.pick(&[
        Fate::Lost,
        Fate::Unanswered,
        Fate::Unanswered,
        Fate::Late(time),
        Fate::Late(time),
        Fate::Mute,
        Fate::Mute,
    ])
}

impl Plan {
    /// Makes a plan of a storm one of another kind.
    pub(crate) fn become_kind(&mut self, kind: Kind, dice: &Dice) {
        self.kind = kind;
        match kind {
            Kind::Storm => {}
            Kind::Wild => self.become_wild(dice),
            Kind::Slow { alone } => self.become_slow(alone, dice),
            Kind::Steady(strikes, fate) => self.become_steady(strikes, fate, dice),
            Kind::Group => self.become_group(dice),
            Kind::Cluster { is_calm } => self.become_cluster(is_calm, dice),
        }
    }

    fn become_wild(&mut self, dice: &Dice) {
        self.claim_window = millis(dice.pick(&[50, 60, 100, 400, 1_000]));
        let ttl = self.claim_window.max(millis(dice.pick(&[100, 200, 500, 2_000])));
        self.ttls = [ttl, ttl * 2];
        self.command_timeout = millis(dice.pick(&[10, 40, 200, 1_000, 2_000]));
        self.habits.late_polls = if dice.below(2) == 0 { 0 } else { dice.below(400_000) };
        self.habits.latest_poll = dice.pick(&[self.claim_window, self.claim_window * 3]);
        let at = || dice.time(Duration::ZERO, self.span);
        let mut acts = Vec::new();
        for name in 0..self.names.len() {
            let parts = [Part::Lock, Part::Queue, Part::Waiters, Part::Marks];
            for part in parts {
                if dice.below(5) == 0 {
                    acts.push((at(), Act::Lose { name, part }));
                }
            }
        }
        for process in 0..self.processes.len() {
            if dice.below(4) == 0 {
                let time = dice.spread(millis(1), ttl * 2);
                acts.push((at(), Act::Mislead { process, time }));
            }
        }
        self.acts.extend(acts);
        self.acts.sort_by_key(|(at, _)| *at);
    }

    fn become_slow(&mut self, alone: bool, dice: &Dice) {
        self.claim_window = millis(dice.pick(&[50, 60, 100]));
        let ttl = millis(dice.pick(&[500, 2_000]));
        self.ttls = [ttl, ttl * 2];
        self.command_timeout = millis(dice.pick(&[200, 1_000, 2_000]));
        let longest = (self.claim_window * 2).min(self.command_timeout * 2 / 5);
        let way = dice.time(self.claim_window / 4, longest);
        self.weather = Weather::slow(way / 2, way);
        self.acts.clear();
        self.habits.late_polls = if dice.below(2) == 0 { 0 } else { dice.below(400_000) };
        self.habits.latest_poll = self.claim_window * 2;
        if alone {
            // An acquire without an answer goes on as a place, and heartbeats have even less time.
            let way = way.min(self.command_timeout.min(ttl / 2) * 2 / 5);
            self.weather = Weather::slow(way / 2, way);
            self.processes.truncate(1);
            self.processes.iter_mut().for_each(|process| process.workers = 1);
            // A block that is used up is followed by a grant for a claim window, which may be over
            // when its answer comes.
            self.kept_quarters = 0;
            let Habits { reenters, writes, longest_think, longest_hold, .. } = self.habits;
            self.habits =
                Habits { reenters, writes, longest_think, longest_hold, ..Habits::none() };
        }
    }

    fn become_steady(&mut self, strikes: Strikes, fate: Fate, dice: &Dice) {
        self.claim_window = millis(dice.pick(&[400, 400, 1_000, 3_000]));
        let ttl = self.claim_window.max(millis(dice.pick(&[1_000, 3_000, 10_000])));
        self.ttls = [ttl, ttl * 2];
        self.command_timeout = millis(dice.pick(&[100, 400, 2_000]));
        (self.weather, self.acts) = (Weather::calm(), Vec::new());
        let Habits { drops, half_releases, reenters, writes, other_ttls, .. } = self.habits;
        self.habits = Habits {
            drops,
            half_releases,
            reenters,
            writes,
            other_ttls,
            longest_think: dice.pick(&[millis(10), millis(100), self.claim_window]),
            longest_hold: dice.pick(&[millis(1), millis(20), self.claim_window]),
            ..Habits::none()
        };
        if dice.below(2) == 0 {
            self.processes.iter_mut().for_each(|process| process.workers = 1);
        }
        // Each has the time to be over before the next.
        let apart = self.in_vain() + self.claim_window * 2;
        let count = dice.from_to(1, 3);
        for number in 0..count {
            let process = usize::try_from(dice.below(self.processes.len() as u64)).unwrap_or(0);
            let from = apart * u32::try_from(number).unwrap_or(0)
                + dice.time(Duration::ZERO, self.claim_window);
            self.mishaps.push((from, self.claim_window, MishapPlan { process, strikes, fate }));
        }
        self.span = apart * u32::try_from(count).unwrap_or(0);
    }
}

/// A mishap without its times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MishapPlan {
    process: usize,
    strikes: Strikes,
    fate: Fate,
}

impl MishapPlan {
    /// The same with its times.
    pub(crate) fn between(
        self,
        from: leasehold::time::Instant,
        until: leasehold::time::Instant,
    ) -> Mishap {
        let Self { process, strikes, fate } = self;
        Mishap { process, from, until, strikes, fate }
    }
}
