//! A lease lives on at the new master.
#![expect(clippy::disallowed_methods, reason = "a failover takes real time")]

use std::time::Duration;

use leasehold::LockRuntime;
use leasehold_testkit::{RedisServer, sentinel::SentinelGroup};

use crate::support::{patient, wait};

const TTL: Duration = Duration::from_secs(2);
const NAME: &str = "counter";

async fn runtime_at(url: &str) -> LockRuntime {
    // Longer than work may stand still: nothing may wait for a master that hangs.
    let long = Duration::from_secs(60);
    let builder = patient::builder().connect_timeout(long).command_timeout(long);
    let builder = builder.ttl(TTL).outage_patience(2 * long);
    builder.connect(url).await.expect("the group has a master")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_renewed_at_the_new_master_and_the_old_one_is_left() {
    let group = SentinelGroup::start();
    let locks = runtime_at(&group.url()).await;
    let guard = locks.lock(NAME).expect("a name").acquire().await.expect("a lease");
    let key = format!("leasehold:{{{NAME}}}:lease");
    let has_it = || group.servers().iter().all(|server| server.query(&["EXISTS", &*key]));
    wait::until("the replicas have the lease", has_it).await;
    let old = group.master();
    tokio::task::block_in_place(|| group.fail_over());
    assert_ne!(old.pid(), group.master().pid());

    tokio::time::sleep(2 * TTL).await;
    assert!(guard.is_held(), "it is renewed where it lives now");
    // A server that is made a replica ends its connections, also that of the question.
    let clients = || old.try_query::<String>(&["CLIENT", "LIST"]);
    let left = || clients().is_ok_and(|clients| !clients.contains("name=leasehold"));
    wait::until("no connection to the old master is left", left).await;
    let has = |server: &RedisServer| server.query::<bool>(&["EXISTS", &*key]);
    assert!(has(group.master()));
    guard.release().await.expect("a lease that was held to the end");
}

#[tokio::test]
async fn control_an_address_of_one_server_stays_with_it() {
    let mut group = SentinelGroup::start();
    let builder = LockRuntime::builder().ttl(TTL).outage_patience(Duration::from_secs(1));
    let locks = builder.connect(&group.master().url()).await.expect("a master");
    let lock = locks.lock(NAME).expect("a name");
    lock.acquire().await.expect("a lease").release().await.expect("held to the end");
    group.kill_master();
    // Another server is the master now.
    let _ = group.master();
    lock.acquire().wait(Duration::from_secs(5)).await.expect_err("nobody is there");
}
