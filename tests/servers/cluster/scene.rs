use std::time::Duration;

use leasehold::LockRuntime;
use leasehold_testkit::cluster::{RedisCluster, slot_of};

use crate::support::patient;

pub(super) const TTL: Duration = Duration::from_secs(2);

/// A runtime for which nothing ends soon: nothing may wait for a node that hangs.
pub(super) async fn runtime_at(url: &str) -> LockRuntime {
    let long = Duration::from_secs(60);
    let builder = patient::builder().connect_timeout(long).command_timeout(long);
    let builder = builder.ttl(TTL).outage_patience(2 * long);
    builder.connect(url).await.expect("the Cluster has masters")
}

/// The lease of a lock.
pub(crate) fn key(name: &str) -> String {
    format!("leasehold:{{{name}}}:lease")
}

/// The slot of a lock.
pub(super) fn slot(name: &str) -> u16 {
    slot_of(&key(name))
}

/// A name for each master, in their order at the start.
pub(crate) fn a_name_for_each() -> Vec<String> {
    let of = |master| {
        let mut names = (0..).map(|number| format!("counter-{number}"));
        names.find(|name| RedisCluster::owner_of(&key(name)) == master).expect("some name")
    };
    (0..usize::from(RedisCluster::MASTERS)).map(of).collect()
}
