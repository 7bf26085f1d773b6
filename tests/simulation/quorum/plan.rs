use std::time::Duration;

use leasehold_core::QuorumSettings;
use leasehold_testkit::sim::{Dice, Drift, Gale};

use super::super::plan::millis;

/// What happens in a run, as its seed has it.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// How far the clock of each node is ahead, in microseconds.
    pub(crate) aheads: Vec<i64>,
    pub(crate) drifts: Vec<Drift>,
    pub(crate) workers: usize,
    pub(crate) names: usize,
    pub(crate) ttl: Duration,
    pub(crate) gale: Gale,
    pub(crate) acts: Vec<(Duration, Act)>,
    pub(crate) span: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    Pause { process: usize, time: Duration },
    Cut { process: usize, node: usize, time: Duration },
    Fall { node: usize, time: Duration, loses: bool },
}

pub(crate) const TOLERANCE: Duration = millis(100);
pub(crate) const PATIENCE: Duration = millis(60);
pub(crate) const LONGEST: Duration = millis(1_000);

/// Nothing goes wrong.
pub(crate) const CALM: Gale = Gale {
    longest: millis(2),
    detours: 0,
    longest_detour: millis(2),
    lost_there: 0,
    lost_back: 0,
    twice: 0,
};

pub(crate) fn settings() -> QuorumSettings {
    QuorumSettings::default()
        .longest_ttl(LONGEST)
        .and_then(|settings| settings.tolerance(TOLERANCE))
        .and_then(|settings| settings.node_timeout(PATIENCE))
        .unwrap()
}

impl Plan {
    pub(crate) fn draw(seed: u64) -> Self {
        let dice = Dice::new(seed ^ 0x0071_756f);
        let nodes = dice.pick(&[3, 3, 5]);
        // In a quarter of the runs, clocks are far apart; then no data may be lost.
        let is_skewed = seed % 4 == 3;
        let ahead = |_| {
            let near = i64::try_from(dice.below(100_001)).unwrap_or(0) - 50_000;
            if is_skewed && dice.below(2) == 0 {
                dice.pick(&[-60_000_000, 60_000_000, 100_000, -100_000])
            } else {
                near
            }
        };
        let aheads: Vec<i64> = (0..nodes).map(ahead).collect();
        let processes = usize::try_from(dice.from_to(2, 4)).unwrap_or(2);
        let drift = |_| {
            let longest = if is_skewed { millis(30_000) } else { millis(50) };
            let rate = dice.from_to(995_500, 1_004_500);
            Drift::new(dice.time(Duration::ZERO, longest), rate)
        };
        let drifts = (0..processes).map(drift).collect();
        let windy =
            Gale { longest: millis(8), detours: 50_000, longest_detour: millis(80), ..CALM };
        let stormy = Gale {
            lost_there: dice.pick(&[5_000, 50_000]),
            lost_back: dice.pick(&[5_000, 50_000, 150_000]),
            twice: 30_000,
            longest_detour: millis(400),
            ..windy
        };
        let gale = dice.pick(&[CALM, windy, stormy, stormy]);
        let mut plan = Self {
            aheads,
            drifts,
            workers: usize::try_from(dice.from_to(1, 2)).unwrap_or(1),
            names: usize::try_from(dice.from_to(1, 2)).unwrap_or(1),
            ttl: dice.pick(&[millis(300), millis(600), LONGEST]),
            gale,
            acts: Vec::new(),
            span: millis(4_000),
        };
        for _ in 0..dice.below(10) {
            plan.draw_act(&dice, is_skewed);
        }
        plan.acts.sort_by_key(|(at, _)| *at);
        plan
    }

    fn draw_act(&mut self, dice: &Dice, is_skewed: bool) {
        let below = |bound: usize| usize::try_from(dice.below(bound as u64)).unwrap_or(0);
        let at = dice.time(Duration::ZERO, self.span);
        let time = dice.spread(millis(1), millis(1_500));
        let (process, node) = (below(self.drifts.len()), below(self.aheads.len()));
        let act = match dice.below(4) {
            0 => Act::Pause { process, time },
            1 => Act::Cut { process, node, time },
            _ => Act::Fall { node, time, loses: !is_skewed && dice.below(3) > 0 },
        };
        self.acts.push((at, act));
    }
}
