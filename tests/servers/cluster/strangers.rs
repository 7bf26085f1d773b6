//! A node of another Cluster at the address of one that died, and a Cluster that is made anew.

use std::time::Duration;

use leasehold_testkit::{Log, Patience, RedisServer, cluster::RedisCluster};
use tokio::task::block_in_place;

use super::scene::a_name_for_each;
use crate::support::{patient, stranger, wait};

/// The longest ttl of the locks here: for so long nobody believes in a Cluster that was made anew.
const TTL: Duration = Duration::from_secs(3);

/// Nobody has taken over from a master that died, and its address belongs to the slots' owner still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_address_of_a_dead_owner_is_not_asked_for_commands() {
    let cluster = RedisCluster::start();
    for node in cluster.servers() {
        node.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let builder = patient::builder().command_timeout(Duration::from_secs(1)).ttl(TTL);
    let locks = builder.connect(&*cluster.url()).await.expect("the Cluster has masters");
    let names = a_name_for_each();
    let [dead, other] = [&names[0], &names[1]].map(|name| locks.lock(&**name).expect("a name"));
    dead.acquire().await.expect("a lease").release().await.expect("held to the end");
    // Nobody tells that it is gone.
    let others = &cluster.servers()[1..];
    others.iter().for_each(RedisServer::stop_signal);
    cluster.kill(0);
    let stranger = block_in_place(|| stranger::at_address_of(&cluster.servers()[0]));
    for _ in 0..5 {
        let tried = wait::soon("an answer", dead.try_acquire()).await;
        assert!(tried.is_err(), "its owner is dead, and yet {tried:?}");
    }
    let before = stranger::looks(&stranger);
    wait::until("the stranger is asked", || stranger::looks(&stranger) > before).await;
    others.iter().for_each(RedisServer::cont_signal);
    let acquire = || async { other.acquire().await.ok() };
    let guard = Patience::of(wait::CEILING).until_async(acquire).await;
    guard.expect("its owner lives").release().await.expect("held to the end");
    assert_eq!(stranger.query::<u64>(&["DBSIZE"]), 0, "the stranger was asked for commands");

    stranger.kill();
    cluster.revive(0);
    let acquire = || async { dead.acquire().await.ok() };
    let guard = Patience::of(wait::CEILING).until_async(acquire).await;
    guard.expect("its owner is back").release().await.expect("held to the end");
}

/// A replica was taken out, keeps its id, and follows the master of another Cluster. So nobody takes over
/// when its old master dies.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_moved_takes_nobody_along() {
    let cluster = RedisCluster::with_replicas();
    let builder = patient::builder().command_timeout(Duration::from_secs(1)).ttl(TTL);
    let locks = builder.connect(&*cluster.url()).await.expect("the Cluster has masters");
    let lock = locks.lock(&*a_name_for_each()[0]).expect("a name");
    lock.acquire().await.expect("a lease").release().await.expect("held to the end");
    let moved = &cluster.servers()[cluster.masters().len()];
    let stranger = block_in_place(|| stranger::of_replica(moved));
    cluster.kill(0);
    let before = stranger::looks(moved);
    for _ in 0..5 {
        let tried = wait::soon("an answer", lock.try_acquire()).await;
        assert!(tried.is_err(), "its owner is dead, and yet {tried:?}");
    }
    wait::until("who moved is asked", || stranger::looks(moved) > before).await;
    assert_eq!(stranger.query::<u64>(&["DBSIZE"]), 0, "the stranger was asked for commands");

    cluster.revive(0);
    let acquire = || async { lock.acquire().await.ok() };
    let guard = Patience::of(wait::CEILING).until_async(acquire).await;
    guard.expect("its owner is back").release().await.expect("held to the end");
    assert_eq!(stranger.query::<u64>(&["DBSIZE"]), 0, "the stranger was asked for commands");
}

/// Of three addresses, the stranger has one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_process_finds_the_cluster_of_most_of_its_addresses() {
    let cluster = RedisCluster::start();
    cluster.kill(0);
    let stranger = block_in_place(|| stranger::at_address_of(&cluster.servers()[0]));
    for node in &cluster.servers()[1..] {
        node.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    let name = &a_name_for_each()[1];
    for _ in 0..5 {
        let locks = patient::builder().connect(&*cluster.url()).await.expect("two masters");
        let lock = locks.lock(&**name).expect("a name");
        lock.acquire().await.expect("a lease").release().await.expect("held to the end");
    }
    assert_eq!(stranger.query::<u64>(&["DBSIZE"]), 0, "the stranger was asked for commands");
}

/// All nodes forget who they were; none of the known ones is left.
#[tokio::test]
async fn a_cluster_that_was_made_anew_is_believed_after_the_longest_ttl() {
    let (log, _collecting) = Log::as_services_see_it();
    let cluster = RedisCluster::start();
    let builder = patient::builder().command_timeout(Duration::from_secs(1)).ttl(TTL);
    let locks = builder.connect(&*cluster.url()).await.expect("the Cluster has masters");
    let lock = locks.lock("a").expect("a name");
    lock.acquire().await.expect("a lease").release().await.expect("held to the end");
    for node in cluster.servers() {
        node.command(&["FLUSHALL"]);
        node.command(&["CLUSTER", "RESET", "HARD"]);
    }
    cluster.unite();
    for node in cluster.servers() {
        // An open connection leads to the same server.
        node.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    }
    let tried = lock.try_acquire().await;
    assert!(tried.is_err(), "it may be another Cluster, and yet {tried:?}");
    let acquire = || async { lock.acquire().await.ok() };
    let guard = Patience::of(wait::CEILING).until_async(acquire).await;
    guard.expect("the new Cluster").release().await.expect("held to the end");
    assert_eq!(log.count("the Cluster was made anew"), 1, "{:#?}", log.lines());
}
