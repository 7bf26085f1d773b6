//! A quorum, and what its servers keep of a lock.

use std::time::Duration;

use leasehold::{AcquisitionId, Guard, LockRuntime};
use leasehold_testkit::{QuorumGroup, RedisServer};

use crate::support::{crew::Finished, wait};

/// The name that is locked.
pub(super) const NAME: &str = "value";

/// Longer than any row takes: nobody renews meanwhile.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// How often somebody tries for what is taken.
pub(super) const TRIES: usize = 5;

/// So many servers, which count from the start.
pub(crate) fn group(nodes: usize) -> QuorumGroup {
    let group = QuorumGroup::start(nodes);
    group.let_vote();
    group
}

/// The numbers of the servers that have a lease of an acquisition.
pub(crate) fn holding(group: &QuorumGroup, id: AcquisitionId) -> Vec<usize> {
    let id = id.to_string();
    let has_it = |server: &RedisServer| text(server, NAME).is_some_and(|text| text.contains(&id));
    let all = group.servers().enumerate();
    all.filter(|(_, server)| has_it(server)).map(|(number, _)| number).collect()
}

/// What a server keeps of a lock.
pub(crate) fn text(server: &RedisServer, name: &str) -> Option<String> {
    server.query(&["GET", &format!("leasehold:{{{name}}}:lease")])
}

/// A lease that another process of the quorum gets, if it gets one.
pub(super) async fn try_for(locks: &LockRuntime) -> Option<Guard> {
    let lock = locks.lock(NAME).expect("a name");
    // What too few servers answer is an error, and no lease.
    wait::soon("an answer", lock.try_acquire()).await.ok().flatten()
}

/// Whether no server keeps anything that has no end, but for its boot mark.
pub(crate) fn leaves_nothing(group: &QuorumGroup) {
    for server in group.servers() {
        wait::block_until("the lock is free", || !is_held(server));
        let immortal = server.keys_without_ttl();
        let immortal: Vec<_> =
            immortal.iter().filter(|key| !QuorumGroup::is_boot_mark(key)).collect();
        assert!(immortal.is_empty(), "{immortal:?}");
    }
}

/// Whether a server has a lease of the lock that is not over.
pub(super) fn is_held(server: &RedisServer) -> bool {
    let [seconds, micros]: [u64; 2] = server.query(&["TIME"]);
    let now = seconds * 1_000 + micros / 1_000;
    let text = text(server, NAME).unwrap_or_default();
    let ends = text.split(' ').nth(8).and_then(|ends| ends.parse::<u64>().ok());
    ends.is_some_and(|ends| ends > now)
}

/// Checks the history of processes of which none was paused, and says in a few words what happened.
pub(crate) fn strictly_right(finished: &Finished) -> String {
    finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    finished.right()
}
