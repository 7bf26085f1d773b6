//! Who owns the slots is asked once for all, of few nodes, and not believed of one that knows less.

use std::time::Duration;

use leasehold::error::{AcquireError, StoreErrorKind};
use leasehold_testkit::{
    Patience, RedisServer,
    cluster::{RedisCluster, slot_of},
};
use tokio::task::block_in_place;

use super::scene::{a_name_for_each, key, runtime_at};
use crate::support::{patient, storage, stranger::looks, wait};

/// A gate asks only when it is used.
#[tokio::test]
async fn a_crowd_at_a_new_gate_looks_once() {
    const CALLS: usize = 200;
    let cluster = RedisCluster::start();
    let before: u64 = cluster.servers().iter().map(looks).sum();
    storage::crowd_at(&cluster.url(), CALLS).await;
    let made = cluster.servers().iter().map(looks).sum::<u64>() - before;
    // Each of the pooled connections asks once, too: up to four at each master.
    assert!(made <= 12 + 12, "{made} looks for {CALLS} calls");
}

/// One that was just set up, beside nodes that hang.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_knows_nothing_changes_no_owner() {
    let cluster = RedisCluster::start();
    let stranger = RedisServer::builder().cluster_node().start();
    let port = stranger.port().expect("a node has a port");
    // Its commands may take as long as the test.
    let long = Duration::from_secs(60);
    let builder = patient::builder().connect_timeout(long).command_timeout(long).ttl(3 * long);
    let url = format!("{},127.0.0.1:{port}", cluster.url());
    let locks = builder.connect(url).await.expect("the Cluster has masters");
    let name = &a_name_for_each()[0];
    let lock = locks.lock(&**name).expect("a name");
    lock.acquire().await.expect("a lease").release().await.expect("held to the end");

    cluster.servers().iter().for_each(RedisServer::stop_signal);
    let before = looks(&stranger);
    let waiting = tokio::spawn(async move { lock.try_acquire().await });
    wait::until("it has been asked", || looks(&stranger) > before + 2).await;
    assert!(!waiting.is_finished(), "nobody has said that its server is another one");
    cluster.servers().iter().for_each(RedisServer::cont_signal);
    let guard = wait::soon("its server answers", waiting).await.expect("no panic");
    guard
        .expect("nothing has failed")
        .expect("a free lock")
        .release()
        .await
        .expect("held to the end");
}

/// A master that had no slots lacks a right that the others grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_owner_is_checked_before_its_first_command() {
    let cluster = RedisCluster::with_spare();
    let locks = runtime_at(&cluster.url()).await;
    let spare = &cluster.servers()[3];
    spare.command(&["ACL", "SETUSER", "default", "-zadd"]);
    let name = &a_name_for_each()[0];
    block_in_place(|| cluster.migrate(slot_of(&key(name)), 3));
    let lock = locks.lock(&**name).expect("a name");
    for _ in 0..3 {
        match wait::soon("an answer", lock.acquire()).await {
            Err(AcquireError::Store(error)) => {
                assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
                assert!(error.to_string().contains("grant the Redis user"), "{error}");
            }
            other => panic!("a right is missing at its new owner, and yet {other:?}"),
        }
    }
    assert_eq!(spare.query::<u64>(&["DBSIZE"]), 0, "nothing was written");
    spare.command(&["ACL", "SETUSER", "default", "+zadd"]);
    let acquire = || async { lock.acquire().await.ok() };
    let guard = Patience::of(wait::CEILING).until_async(acquire).await;
    guard.expect("the same runtime works").release().await.expect("held to the end");
}

/// Each process asks again and again: of many, a Cluster would drown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::disallowed_methods, reason = "nodes are asked from time to time")]
async fn an_outage_of_a_shard_costs_the_others_few_connections() {
    let cluster = RedisCluster::of_masters(6);
    let builder = patient::builder().command_timeout(Duration::from_secs(1));
    let locks = builder.connect(&*cluster.url()).await.expect("the Cluster has masters");
    let mut names = (0..).map(|number| format!("down-{number}"));
    let down = names.find(|name| cluster.master_of(&key(name)) == 0).expect("some name");
    let lock = locks.lock(down).expect("a name");
    lock.acquire().await.expect("a lease").release().await.expect("held to the end");
    cluster.servers()[0].stop_signal();
    let waiting = tokio::spawn(lock.acquire().wait(wait::CEILING));
    // The first misses are followed by looks at all of them.
    tokio::time::sleep(Duration::from_secs(8)).await;
    let dialed = |server: &RedisServer| server.told("stats", "total_connections_received");
    let count = || cluster.servers()[1..].iter().map(dialed).sum::<u64>();
    let before = count();
    tokio::time::sleep(Duration::from_secs(8)).await;
    // The question itself makes one at each.
    let made = count() - before - 5;
    assert!(made <= 16, "{made} connections in 8 s");
    cluster.servers()[0].cont_signal();
    let guard = wait::soon("a lease", waiting).await.expect("a task").expect("its server is back");
    guard.release().await.expect("held to the end");
}
