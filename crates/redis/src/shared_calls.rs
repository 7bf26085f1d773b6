use std::time::Duration;

use leasehold_core::{Instant, LockName};
use redis::Value;

use crate::durations::{GATHERING_PAUSES, NAME_ALONE};

/// Which commands share calls on a node of a Cluster, where a shared call serves the fast path alone
/// (ADR 0035).
///
/// A command that such a call does not serve costs one more round trip. So its name goes alone for a
/// while; and so does everything, longer each time, when calls serve few of their commands.
#[derive(Default)]
pub(super) struct SharedCallPolicy {
    /// Until when nothing is gathered.
    until: Instant,
    /// How long the last pause was; zero after a call that was worth it.
    pause: Duration,
    /// Until when names go alone, by a part of their hash. Names that share a place go alone
    /// together.
    alone: Vec<Instant>,
}

/// For how many names it is known that they go alone.
const PLACES: usize = 64;

impl SharedCallPolicy {
    /// Whether a command about a name may share a call.
    pub(super) fn admits(&self, name: &LockName, now: Instant) -> bool {
        let alone = self.alone.get(name.shard(PLACES)).copied().unwrap_or_default();
        self.until <= now && alone <= now
    }

    /// A call has served so many of the commands that shared it.
    pub(super) fn has_served(&mut self, served: usize, of: usize, now: Instant) {
        if served * 2 >= of {
            self.pause = Duration::ZERO;
            return;
        }
        self.pause = (self.pause * 2).clamp(*GATHERING_PAUSES.start(), *GATHERING_PAUSES.end());
        self.until = now + self.pause;
    }

    /// The command about a name was not served.
    pub(super) fn has_not_served(&mut self, name: &LockName, now: Instant) {
        self.alone.resize(PLACES, Instant::default());
        self.alone[name.shard(PLACES)] = now + NAME_ALONE;
    }
}

/// Whether a shared call has done what a command asked for: it granted the lock, or ended the lease.
/// Whatever else it says, nothing was written.
pub(super) fn is_served(answer: &Value) -> bool {
    matches!(answer, Value::BulkString(_) | Value::Int(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::at(Duration::from_millis(millis))
    }

    fn name(text: &str) -> LockName {
        LockName::new(text).unwrap()
    }

    #[test]
    fn only_a_grant_and_an_ended_lease_were_served() {
        let refused = [Value::BulkString("refused".into()), Value::BulkString("OOM".into())];
        for (answer, is_it) in [
            (Value::BulkString("17 18".into()), true),
            (Value::Int(1), true),
            (Value::Int(0), false),
            (Value::Array(refused.into()), false),
            (Value::Nil, false),
            (Value::Okay, false),
        ] {
            assert_eq!(is_served(&answer), is_it, "{answer:?}");
        }
    }

    #[test]
    fn a_name_that_was_not_served_goes_alone_for_a_while() {
        let mut policy = SharedCallPolicy::default();
        assert!(policy.admits(&name("a"), at(0)));
        policy.has_not_served(&name("a"), at(1000));
        assert!(!policy.admits(&name("a"), at(1099)));
        assert!(policy.admits(&name("a"), at(1100)));
        let others = (0..100).filter(|number| policy.admits(&name(&number.to_string()), at(1001)));
        assert!(others.count() > 80);
    }

    #[test]
    fn calls_that_serve_few_are_made_ever_more_seldom() {
        let mut policy = SharedCallPolicy::default();
        policy.has_served(32, 64, at(0));
        assert!(policy.admits(&name("a"), at(0)));
        let mut now = 0;
        for pause in [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_000, 10_000] {
            policy.has_served(1, 3, at(now));
            assert!(!policy.admits(&name("a"), at(now + pause - 1)), "{pause}");
            now += pause;
            assert!(policy.admits(&name("a"), at(now)), "{pause}");
        }
        policy.has_served(2, 3, at(now));
        policy.has_served(0, 2, at(now));
        assert!(policy.admits(&name("a"), at(now + 10)), "one that was worth it counts anew");
    }
}
