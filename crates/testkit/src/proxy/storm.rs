use std::time::Duration;

use super::{action::Action, message::Side};
use crate::sim::{Dice, Ppm};

/// Random faults, by decisions that follow from a seed; each chance in millionths per message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Storm {
    /// From which the decisions follow, in the order in which messages come.
    pub seed: u64,
    /// A request is lost, and its connection is dead in that direction.
    pub drop_request: Ppm,
    /// A reply is lost, and its connection is dead in that direction.
    pub drop_reply: Ppm,
    /// A push is lost.
    pub drop_push: Ppm,
    /// A message is late.
    pub delay: Ppm,
    /// How late at most.
    pub max_delay: Duration,
    /// A request or a push comes twice.
    pub duplicate: Ppm,
    /// A copy of a request is kept until [`replay`](super::FaultProxy::replay).
    pub copy_later: Ppm,
    /// A connection is reset instead of a message.
    pub reset: Ppm,
    /// A connection is closed in the middle of a message.
    pub cut: Ppm,
}

impl Storm {
    /// What strikes the next message.
    pub(super) fn strike(&self, dice: &Dice, side: Side) -> Option<Action> {
        let (draw, delay) = (dice.below(1_000_000), dice.time(Duration::ZERO, self.max_delay));
        let (request, push) = (side == Side::Request, side == Side::Push);
        let drop = match side {
            Side::Request => self.drop_request,
            Side::Reply => self.drop_reply,
            Side::Push => self.drop_push,
        };
        let chances = [
            (drop, Action::Drop),
            (self.delay, Action::Delay(delay)),
            (if request || push { self.duplicate } else { 0 }, Action::Duplicate),
            (if request { self.copy_later } else { 0 }, Action::CopyLater),
            (self.reset, Action::Reset),
            (self.cut, Action::Cut),
        ];
        let mut below = 0;
        let struck = chances.into_iter().find(|(chance, _)| {
            below += chance;
            draw < below
        });
        struck.map(|(_, action)| action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_and_chances_are_kept() {
        let (drop_request, reset) = (100_000, 50_000);
        let storm = Storm { seed: 3, drop_request, reset, ..Storm::default() };
        let run = |side| {
            let dice = Dice::new(storm.seed);
            let draws = (0..10_000).map(move |_| storm.strike(&dice, side));
            draws.map(|action| action.map(|action| format!("{action:?}"))).collect::<Vec<_>>()
        };
        let requests = run(Side::Request);
        assert_eq!(requests, run(Side::Request));
        let count = |all: &[Option<String>], what: &str| {
            all.iter().filter(|action| action.as_deref() == Some(what)).count()
        };
        assert!((800..1200).contains(&count(&requests, "Drop")));
        assert!((400..600).contains(&count(&requests, "Reset")));
        assert_eq!(count(&run(Side::Reply), "Drop"), 0);
    }
}
