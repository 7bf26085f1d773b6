use std::{num::NonZeroU32, time::Duration};

use leasehold_core::{AcquisitionId, LockName, RuntimeLabel, Ttl, lease::HoldUpdate};
use leasehold_quorum::{NodeCommand, Word};
use leasehold_testkit::{
    contract::{alice, bob},
    sim::Dice,
};

use super::script::TOLERANCE;

/// What may happen on a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Everything,
    /// Without what the simulation has not: the last token, and hours.
    Simulated,
}

/// A random walk: commands at moments that only go forward.
pub(super) struct Walk {
    dice: Dice,
    reach: Reach,
    now: u64,
    /// Whether nobody waits, and nothing is marked as dead: then the short ways serve most commands.
    is_calm: bool,
    /// Tokens that were seen on the way.
    tokens: Vec<u64>,
}

/// All moments are so far apart at least; no life is a multiple of it, so that nothing ends at the moment of
/// a command.
const STEP: u64 = 10_000;

impl Walk {
    pub(super) fn new(dice: Dice, reach: Reach) -> Self {
        let is_calm = dice.chance(500_000);
        Self { dice, reach, is_calm, now: 1_764_000_000_000_000, tokens: Vec::new() }
    }

    /// The next moment, and what is asked then.
    pub(super) fn next(&mut self, names: &[LockName; 2]) -> (u64, Vec<NodeCommand>) {
        self.now += STEP * self.dice.pick(&[0, 0, 1, 1, 4, 6, 100, 2_000]);
        if self.reach == Reach::Everything && self.dice.chance(20_000) {
            self.now += STEP * 100 * 3_600;
        }
        let count = self.dice.pick(&[1, 1, 1, 2, 3]);
        let commands = (0..count).map(|_| self.command(names)).collect();
        (self.now, commands)
    }

    /// Remembers the numbers of an answer: some of them are tokens.
    pub(super) fn learn(&mut self, answer: &str) {
        let numbers = answer.split(' ').filter_map(|part| part.parse::<u64>().ok());
        self.tokens.extend(numbers.filter(|number| *number > 1_000_000));
        let most = self.tokens.len().saturating_sub(6);
        self.tokens.drain(..most);
    }

    fn id(&self) -> AcquisitionId {
        let often = if self.is_calm { alice(1) } else { bob(1) };
        self.dice.pick(&[alice(1), alice(2), bob(1), often, often])
    }

    fn token(&self) -> u64 {
        let known = if self.tokens.is_empty() { self.now } else { self.dice.pick(&self.tokens) };
        let last = if self.reach == Reach::Everything { (1 << 53) - 1 } else { self.now };
        let rare = if self.dice.chance(30_000) { last } else { known };
        self.dice.pick(&[known, known, known, known + 1, self.now, 7, rare])
    }

    fn ballot(&self) -> u64 {
        let tolerance = u64::try_from(TOLERANCE.as_micros()).expect("a short time");
        let now = self.now + self.dice.below(900);
        let known = self.token().min(self.now + 1_000_000);
        self.dice.pick(&[
            now,
            now,
            now,
            now,
            known + 1,
            self.now - tolerance,
            self.now - tolerance - 1,
            self.now + tolerance,
            self.now + tolerance + 1,
        ])
    }

    fn life(&self) -> Duration {
        Duration::from_millis(self.dice.pick(&[105, 1_005, 30_005]))
    }

    fn label(&self) -> RuntimeLabel {
        RuntimeLabel::new(self.dice.pick(&[
            "web-1",
            "a b  c ",
            "~kept ~",
            "",
            "v5 1 2 x:1 1 1/0 ~",
        ]))
    }

    fn fence_or_any(&self) -> u64 {
        if self.dice.chance(500_000) { 0 } else { self.token() }
    }

    fn command(&self, names: &[LockName; 2]) -> NodeCommand {
        let dice = &self.dice;
        let name = names[usize::from(dice.chance(200_000))].clone();
        let often = if self.is_calm { 1 } else { 2 };
        let attempt = dice.pick(&[1, 1, 1, often, often, often, 3, 10]);
        let any_or_attempt = if dice.chance(150_000) { 0 } else { attempt };
        let keeps = dice.chance(300_000);
        let update = || HoldUpdate {
            count: NonZeroU32::new(u32::try_from(dice.from_to(1, 3)).expect("small")).expect("one"),
            number: dice.from_to(1, 4),
        };
        let ballot = self.ballot();
        let waits = !self.is_calm && dice.chance(700_000);
        let waited = if waits { dice.pick(&[0, 0, 0, 500, 70_000, 3_000_000]) } else { 0 };
        let heard = if waits { self.life() } else { Duration::ZERO };
        let day = self.reach == Reach::Everything && dice.chance(50_000);
        let ttl = if day { Ttl::MAX } else { self.life() };
        let word = match dice.below(20) {
            0..=6 => Word::Ask {
                attempt,
                ballot,
                ttl,
                waited: Duration::from_micros(waited),
                heard,
                label: self.label(),
                keeps,
            },
            7 | 8 => Word::Settle { attempt, fence: self.token() },
            9 => Word::Renew { attempt, fence: self.token(), ttl: self.life() },
            10 => {
                let (fence, label) = (self.token(), self.label());
                let before = fence.saturating_sub(dice.from_to(1, 2_000));
                let holds = dice.chance(500_000).then(update);
                Word::Spread { attempt, fence, before, ttl, holds, label, keeps }
            }
            11 => Word::Hold {
                attempt,
                update: update(),
                ttl: Ttl::new(self.life()).expect("in range"),
            },
            12..=14 => Word::End { attempt: any_or_attempt, fence: 0, marks: false },
            15 => Word::End {
                attempt: any_or_attempt,
                fence: self.fence_or_any(),
                // All tries at once are only withdrawn.
                marks: any_or_attempt != 0 && !self.is_calm && dice.chance(500_000),
            },
            16 => Word::Keep {
                attempt: any_or_attempt,
                fence: self.fence_or_any(),
                rest: self.life(),
            },
            17 if !self.is_calm => Word::Withdraw,
            18 if dice.chance(500_000) => Word::Force { fence: self.token() },
            18 => Word::Pass { fence: self.token() },
            _ => Word::Inspect,
        };
        NodeCommand { name, id: self.id(), word }
    }
}
