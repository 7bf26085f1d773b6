use std::collections::BTreeMap;

use leasehold_core::{Instant, LockName};

/// What a master has written, and how far each of its replicas has it.
#[derive(Debug, Default)]
pub(super) struct Stream {
    written: u64,
    /// The last write about each name.
    about: BTreeMap<LockName, u64>,
    followers: BTreeMap<usize, Follower>,
    /// Different for each link that there was.
    links: u64,
}

/// A replica, as its master has it.
#[derive(Debug)]
struct Follower {
    link: u64,
    /// What it has.
    arrived: u64,
    /// What its master knows that it has.
    acknowledged: u64,
    /// Nothing overtakes.
    arrives_after: Instant,
    /// Nothing reaches it any more, nor does its master hear of it.
    is_lost: bool,
}

impl Stream {
    /// A write about some names; its number.
    pub(super) fn write(&mut self, names: &[LockName]) -> u64 {
        self.written += 1;
        for name in names {
            self.about.insert(name.clone(), self.written);
        }
        self.written
    }

    /// A replica has a copy of everything, and follows from now on.
    pub(super) fn follow(&mut self, replica: usize, now: Instant) {
        self.links += 1;
        let (link, all) = (self.links, self.written);
        let (arrived, acknowledged, arrives_after) = (all, all, now);
        let follower = Follower { link, arrived, acknowledged, arrives_after, is_lost: false };
        self.followers.insert(replica, follower);
    }

    /// A replica follows no more: what is on its way to it is lost.
    pub(super) fn leave(&mut self, replica: usize) {
        self.followers.remove(&replica);
    }

    /// Nothing reaches a replica any more, nor does it tell of anything.
    pub(super) fn lose(&mut self, replica: usize) {
        if let Some(follower) = self.followers.get_mut(&replica) {
            follower.is_lost = true;
        }
    }

    /// The replicas, and the link to each.
    pub(super) fn followers(&self) -> Vec<(usize, u64)> {
        self.followers.iter().map(|(replica, follower)| (*replica, follower.link)).collect()
    }

    /// When a write arrives at a replica that would by itself take until `at`.
    pub(super) fn arrival(
        &mut self,
        replica: usize,
        at: Instant,
        apart: std::time::Duration,
    ) -> Instant {
        let Some(follower) = self.followers.get_mut(&replica) else { return at };
        follower.arrives_after = at.max(follower.arrives_after + apart);
        follower.arrives_after
    }

    /// Nothing on its way takes longer than until then.
    pub(super) fn hurry(&mut self, latest: Instant) {
        for follower in self.followers.values_mut() {
            follower.arrives_after = follower.arrives_after.min(latest);
        }
    }

    /// A write arrives at a replica; whether the link still stands.
    pub(super) fn arrived(&mut self, replica: usize, link: u64, number: u64) -> bool {
        let here = |follower: &&mut Follower| follower.link == link && !follower.is_lost;
        let Some(follower) = self.followers.get_mut(&replica).filter(here) else { return false };
        follower.arrived = follower.arrived.max(number);
        true
    }

    /// The master hears that a replica has a write.
    pub(super) fn acknowledged(&mut self, replica: usize, link: u64, number: u64) {
        let here = |follower: &&mut Follower| follower.link == link && !follower.is_lost;
        if let Some(follower) = self.followers.get_mut(&replica).filter(here) {
            follower.acknowledged = follower.acknowledged.max(number);
        }
    }

    /// How many replicas are known to have a write, as `WAIT` counts them.
    pub(super) fn count(&self, number: u64) -> usize {
        self.followers.values().filter(|follower| follower.acknowledged >= number).count()
    }

    /// How far a replica is.
    pub(super) fn reached(&self, replica: usize) -> u64 {
        self.followers.get(&replica).map_or(0, |follower| follower.arrived)
    }

    /// Whether a replica lacks something about a name.
    pub(super) fn lacks(&self, replica: usize, name: &LockName) -> bool {
        self.about.get(name).is_some_and(|number| *number > self.reached(replica))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    #[test]
    fn a_write_counts_when_its_replica_has_told_of_it() {
        let (now, names) = (ManualClock::START, [LockName::new("a").unwrap()]);
        let mut stream = Stream::default();
        stream.follow(1, now);
        stream.follow(2, now);
        let number = stream.write(&names);
        let [(one, link), (two, _)] = stream.followers()[..] else { panic!("two follow") };
        assert_eq!((stream.count(number), stream.lacks(one, &names[0])), (0, true));
        assert!(stream.arrived(one, link, number));
        assert_eq!((stream.count(number), stream.lacks(one, &names[0])), (0, false));
        stream.acknowledged(one, link, number);
        assert_eq!((stream.count(number), stream.count(0), stream.reached(two)), (1, 2, 0));
    }

    #[test]
    fn what_was_on_its_way_to_a_replica_that_left_is_lost() {
        let now = ManualClock::START;
        let mut stream = Stream::default();
        stream.follow(1, now);
        let number = stream.write(&[]);
        let (_, link) = stream.followers()[0];
        stream.leave(1);
        stream.follow(1, now);
        assert!(!stream.arrived(1, link, number));
        assert_eq!(stream.count(number), 1, "it began with a copy of everything");
    }
}
