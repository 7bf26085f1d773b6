//! Faults of the matrix that need no proxy, with Sentinels and on a Cluster: processes at work under
//! one lock meet them one after the other.

use std::{slice, time::Duration};

use leasehold_testkit::{Patience, RedisCluster, RedisServer, SentinelGroup};

use crate::support::{
    crew::{Crew, Finished, Plan},
    lease, wait,
};

const PLAN: Plan = Plan { ttl: Duration::from_millis(800), ..Plan::PROTECTED };

/// How often the server forgets its scripts, and cuts all connections.
const TIMES: usize = 10;

#[test]
fn nothing_is_lost_with_sentinels() {
    let group = SentinelGroup::start();
    let finished = suffer(&PLAN, &group.url(), group.master(), group.servers());
    assert_right(&finished);
    leaves_nothing(slice::from_ref(group.master()));
}

#[test]
fn nothing_is_lost_on_a_cluster() {
    let cluster = RedisCluster::start();
    let master = &cluster.masters()[RedisCluster::owner_of(&PLAN.lease())];
    let finished = suffer(&PLAN, &cluster.url(), master, cluster.servers());
    assert_right(&finished);
    leaves_nothing(cluster.masters());
}

/// The control: the same with a storage that takes what comes.
#[test]
fn control_without_a_gate_writes_are_lost_on_a_cluster() {
    let cluster = RedisCluster::start();
    let master = &cluster.masters()[RedisCluster::owner_of(&PLAN.lease())];
    let plan = Plan { gated: false, ..PLAN };
    println!("{}", suffer(&plan, &cluster.url(), master, cluster.servers()).wrong());
}

/// Lets one fault after the other strike; `master` has the lock.
fn suffer(plan: &Plan, url: &str, master: &RedisServer, all: &[RedisServer]) -> Finished {
    let mut crew = Crew::start(plan, url);
    // Scripts are forgotten, and connections end, also those that bring pushes.
    for _ in 0..TIMES {
        crew.work(2);
        master.command(&["SCRIPT", "FLUSH"]);
        crew.work(2);
        for kind in ["normal", "pubsub"] {
            for server in all {
                server.command(&["CLIENT", "KILL", "TYPE", kind]);
            }
        }
    }
    // Two holders stand still between their read and their write, past their ttl.
    crew.pause_two();
    // The data goes under a holder.
    let read = crew.halt(2);
    master.flush_all();
    crew.until_above(read);
    crew.resume(2);
    crew.work(10);
    crew.finish()
}

fn assert_right(finished: &Finished) {
    println!("{}", finished.right());
    let summary = finished.history.check().expect("it was right");
    // Whose data went may write before its next renewal.
    assert!(summary.refused >= 3 && summary.lost >= 2, "{summary:?}");
}

fn leaves_nothing(servers: &[RedisServer]) {
    let places = || -> Vec<_> { servers.iter().flat_map(lease::in_use).collect() };
    let gone = Patience::of(wait::CEILING).until(|| places().is_empty().then_some(()));
    assert!(gone.is_some(), "left behind: {:?}", places());
    let immortal: Vec<_> = servers.iter().flat_map(RedisServer::keys_without_ttl).collect();
    assert!(immortal.is_empty(), "{immortal:?}");
}
