use std::time::Duration;

use super::dice::{Dice, Ppm};

/// How often what goes wrong, per message or per turn of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weather {
    /// A message takes far longer than usual, and all behind it on its connection.
    pub slow: Ppm,
    /// A request is lost.
    pub lose_request: Ppm,
    /// A reply is lost.
    pub lose_reply: Ppm,
    /// A request arrives a second time, later.
    pub duplicate: Ppm,
    /// A request takes a detour: whatever is sent after it may overtake it.
    pub late: Ppm,
    /// The server refuses a request for the moment.
    pub refuse: Ppm,
    /// A connection breaks.
    pub reset: Ppm,
    /// A push is lost.
    pub lose_push: Ppm,
    /// A push takes a detour.
    pub late_push: Ppm,
    /// A push comes twice.
    pub duplicate_push: Ppm,
    /// A subscription breaks.
    pub unsubscribe: Ppm,
    /// A process is stopped for a while, between any two polls of its tasks.
    pub pause: Ppm,
    /// The system lets others run for a moment, between any two polls of a process's tasks.
    pub preempt: Ppm,
    /// The longest detour, tail and pause.
    pub longest: Duration,
    /// How long a message usually takes, at least and at most.
    pub usual: (Duration, Duration),
}

impl Weather {
    /// Nothing goes wrong.
    pub fn calm() -> Self {
        Self {
            slow: 0,
            lose_request: 0,
            lose_reply: 0,
            duplicate: 0,
            late: 0,
            refuse: 0,
            reset: 0,
            lose_push: 0,
            late_push: 0,
            duplicate_push: 0,
            unsubscribe: 0,
            pause: 0,
            preempt: 0,
            longest: Duration::ZERO,
            usual: USUAL,
        }
    }

    /// Nothing goes wrong, but every message takes such a time.
    pub fn slow(least: Duration, most: Duration) -> Self {
        Self { usual: (least, most), ..Self::calm() }
    }

    /// Some things go wrong, some of them often: every seed has other ones.
    pub fn drawn(dice: &Dice, longest: Duration) -> Self {
        let level = dice.pick(&[3_000, 20_000, 60_000]);
        let rate = |most: Ppm| match dice.below(5) {
            0 | 1 => 0,
            2 | 3 => dice.below(most.min(level)),
            _ => dice.below(most),
        };
        Self {
            slow: rate(40_000),
            lose_request: rate(80_000),
            lose_reply: rate(80_000),
            duplicate: rate(150_000),
            late: rate(80_000),
            refuse: rate(40_000),
            reset: rate(40_000),
            lose_push: rate(500_000),
            late_push: rate(400_000),
            duplicate_push: rate(200_000),
            unsubscribe: rate(10_000),
            pause: rate(8_000),
            preempt: rate(100_000),
            longest,
            usual: USUAL,
        }
    }

    /// Whether nothing goes wrong.
    pub fn is_calm(&self) -> bool {
        Self { longest: Duration::ZERO, ..*self } == Self::calm()
    }

    /// How long a message takes.
    pub(super) fn delay(&self, dice: &Dice) -> Duration {
        if dice.chance(self.slow) {
            return dice.spread(self.usual.1, self.longest);
        }
        dice.spread(self.usual.0, self.usual.1)
    }

    /// How long a detour takes.
    pub(super) fn detour(&self, dice: &Dice) -> Duration {
        dice.spread(self.usual.1, self.longest.max(self.usual.1))
    }
}

/// How long a message usually takes.
const USUAL: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
