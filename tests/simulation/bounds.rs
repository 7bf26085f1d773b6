use std::time::Duration;

use leasehold_testkit::sim::{Fate, Strikes};

use super::{
    kind::Kind,
    plan::{Habits, Plan, millis},
};

/// How long what may take when nothing goes wrong, or one thing at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// A dead holder, then dead waiters, then a hand-over.
    pub(crate) recovery: Duration,
    /// For how long a task waits in vain when nothing goes wrong.
    pub(crate) in_vain: Duration,
    /// The end of all grants that no task takes.
    pub(crate) rest: Duration,
}

/// What messages and timers add to a recovery.
const SLACK: Duration = millis(150);
/// One way of a message at most, and what the server takes for it.
const WAY: Duration = Duration::from_micros(2_100);
/// The shortest time between two rounds of heartbeats of a process.
pub(crate) const ROUND: Duration = millis(25);
/// The shortest pause between two heartbeats of a place, and the longest first pause after a
/// failure.
const PAUSE: Duration = millis(25);
/// The shortest deadline of a heartbeat, if a command may take that long.
const SHORTEST_DEADLINE: Duration = millis(100);
/// How soon at the latest those ask again who may have missed a message.
const SOON: Duration = millis(50);

impl Bounds {
    pub(crate) fn of(plan: &Plan) -> Self {
        let (ttl, window) = (plan.ttls[1], plan.claim_window);
        Self {
            recovery: ttl + window * 2 + SLACK + plan.switch(),
            in_vain: plan.in_vain(),
            rest: window * 2 + SLACK + plan.switch(),
        }
    }
}

impl Plan {
    /// For how long a task may wait in vain, exactly: P8.
    pub(crate) fn in_vain(&self) -> Duration {
        let ways = WAY * 6;
        let wakeup = self.heartbeat() + ways + self.in_vain_on_its_way(WAY);
        let Kind::Steady(strikes, fate) = self.kind else { return wakeup };
        match strikes {
            // A release of another name may be on the same connection.
            _ if fate == Fate::Mute => wakeup + self.command_deadline() + PAUSE + ROUND,
            // A heartbeat tells of the grant.
            Strikes::Push => wakeup,
            // No task knows that the lock was given back, or tasks that come meanwhile wait for the
            // answer, until the release is sent again.
            Strikes::LastRelease => wakeup.max(self.command_deadline() + PAUSE + ways),
            _ => wakeup.max(self.heartbeat_deadline() + PAUSE + ROUND + ways),
        }
    }

    /// How long it takes at most until a task that is alone in a slow network has the lock: its
    /// last release, its acquire, and a message that crosses either.
    pub(crate) fn alone(&self) -> Option<Duration> {
        let is_alone = self.kind == Kind::Slow { alone: true };
        is_alone.then_some(self.weather.usual.1 * 6)
    }

    /// What the habits of tasks add to that in a run in which nothing goes wrong.
    pub(crate) fn endings(&self) -> Duration {
        let Habits { forgets, unrenewed, max_holds, .. } = self.habits;
        let mut most = Duration::ZERO;
        if forgets > 0 {
            // Offers to tasks that are not polled end after half of the window, one after the
            // other.
            most += self.claim_window * u32::try_from(self.workers()).unwrap_or(u32::MAX);
        }
        if forgets + unrenewed + max_holds > 0 {
            // A holder stops to believe a little before its lease ends: a hundredth of the ttl,
            // another for its clock, and the way of the command.
            most += self.ttls[1] / 50 + millis(2) + WAY;
        }
        most
    }

    /// From one heartbeat to the next, at most.
    fn heartbeat(&self) -> Duration {
        (self.claim_window / 4).max(PAUSE).max(SOON) + ROUND
    }

    /// How long a command may take.
    pub(crate) fn command_deadline(&self) -> Duration {
        self.command_timeout.min(self.ttls[1] / 2)
    }

    /// How long a command may take that carries a place.
    fn heartbeat_deadline(&self) -> Duration {
        self.command_deadline().min((self.claim_window / 3).max(SHORTEST_DEADLINE))
    }
}
