//! Grants between processes on sharded channels: they do not cross the bus of the Cluster, and where nobody hears
//! them there, the plain channel brings them.
#![expect(clippy::disallowed_methods, reason = "the Cluster takes notice of a move in real time")]

use std::time::Duration;

use leasehold::{LockRuntime, store::Inspection};
use leasehold_testkit::{
    RedisServer,
    cluster::{RedisCluster, slot_of},
};
use tokio::task::{JoinSet, block_in_place};

use super::scene::{a_name_for_each, runtime_at};
use crate::{
    documented_rights::{documented, set_user},
    support::wait,
};

/// How many messages a node has published on plain channels, which it sends to all others. What the bus tells of itself
/// counts none with Valkey.
fn crossed(server: &RedisServer) -> u64 {
    server.calls("publish")
}

/// How many subscriptions a node has refused.
fn refused(server: &RedisServer) -> u64 {
    let stats: String = server.query(&["INFO", "commandstats"]);
    let line = stats.lines().find(|line| line.starts_with("cmdstat_ssubscribe:"));
    let of = |part: &str| part.strip_prefix("rejected_calls=")?.parse().ok();
    line.and_then(|line| line.split(',').find_map(of)).unwrap_or(0)
}

/// Sharded channels that somebody listens to at a node.
fn channels(server: &RedisServer) -> Vec<String> {
    server.query(&["PUBSUB", "SHARDCHANNELS"])
}

/// Sharded channels came with Redis 7.0.
fn has_sharded_channels(server: &RedisServer) -> bool {
    let info: String = server.query(&["INFO", "server"]);
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    !version.expect("a version").starts_with("6.")
}

/// A Cluster where there are sharded channels, and the name of a lock of its first master.
fn with_sharded_channels() -> Option<(RedisCluster, String)> {
    let cluster = RedisCluster::start();
    let has_them = has_sharded_channels(&cluster.servers()[0]);
    has_them.then(|| (cluster, a_name_for_each().swap_remove(0)))
}

async fn is_waited_for(locks: &LockRuntime, name: &str) -> bool {
    let seen = locks.inspect(name).await.expect("an answer");
    matches!(seen, Inspection::Held(lease) if !lease.waiters.is_empty())
}

/// Two processes pass a lock on to each other, so often.
async fn hand_over(name: &str, between: &[LockRuntime; 2], times: u32) {
    let locks = [0, 1].map(|at: usize| between[at].lock(name).expect("a name"));
    let mut guard = locks[0].acquire().await.expect("a lease");
    for turn in 1..=times {
        let next = locks[turn as usize % 2].clone();
        let waiting = tokio::spawn(async move { next.acquire().wait(wait::CEILING).await });
        while !is_waited_for(&between[0], name).await {
            tokio::task::yield_now().await;
        }
        guard.release().await.expect("a lease that was held to the end");
        let granted = wait::soon("a grant", waiting).await.expect("no panic");
        guard = granted.expect("the only one that waits");
    }
    guard.release().await.expect("a lease that was held to the end");
}

/// Two processes that listen at a master, because they have passed a lock of it on.
async fn both_listen(url: &str, master: &RedisServer, name: &str) -> [LockRuntime; 2] {
    let both = [runtime_at(url).await, runtime_at(url).await];
    hand_over(name, &both, 2).await;
    wait::until("both listen at the master", || channels(master).len() == 2).await;
    both
}

/// Passes a lock on, and sees that no message for it goes to all nodes.
async fn hand_over_apart(master: &RedisServer, name: &str, between: &[LockRuntime; 2], times: u32) {
    let before = crossed(master);
    hand_over(name, between, times).await;
    assert_eq!(crossed(master) - before, 0, "messages that all nodes get");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_between_processes_do_not_cross_the_bus() {
    let cluster = RedisCluster::start();
    let name = &a_name_for_each()[0];
    let master = &cluster.servers()[0];
    if !has_sharded_channels(master) {
        let both = [runtime_at(&cluster.url()).await, runtime_at(&cluster.url()).await];
        hand_over(name, &both, 4).await;
        assert!(crossed(master) >= 4, "each is published on a plain channel");
        return;
    }
    let both = both_listen(&cluster.url(), master, name).await;
    hand_over_apart(master, name, &both, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_documented_rights_suffice_for_them() {
    let Some((cluster, name)) = with_sharded_channels() else { return };
    let (name, master) = (&name, &cluster.servers()[0]);
    for server in cluster.servers() {
        set_user(server, &["ACL", "SETUSER", "locks", "reset", "on"].map(str::to_owned));
        documented()[..3].iter().for_each(|rights| set_user(server, rights));
    }
    let url = cluster.url().replace("://", "://locks:PASSWORD@");
    let both = both_listen(&url, master, name).await;
    hand_over_apart(master, name, &both, 20).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_whose_slot_moves_is_replaced() {
    let Some((cluster, name)) = with_sharded_channels() else { return };
    let (name, master) = (&name, &cluster.servers()[0]);
    let both = both_listen(&cluster.url(), master, name).await;
    let old = channels(master);
    let moved = slot_of(&old[0]);
    assert_eq!(slot_of(&old[1]), moved, "both processes choose the same slot");
    block_in_place(|| cluster.migrate(moved, 1));
    hand_over(name, &both, 20).await;
    let is_replaced = || {
        let now = channels(master);
        now.len() == 2 && now.iter().all(|channel| !old.contains(channel))
    };
    wait::until("both listen to other channels", is_replaced).await;
    // What the nodes tell each other about the move comes a moment later.
    tokio::time::sleep(Duration::from_secs(3)).await;
    hand_over_apart(master, name, &both, 20).await;
    assert!(channels(&cluster.servers()[1]).is_empty(), "nobody waits there");
}

/// The processes may not have noticed that it was away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_whose_slot_comes_back_at_once_is_heard_again() {
    const WAITING: u8 = 8;
    let Some((cluster, name)) = with_sharded_channels() else { return };
    let (name, master) = (&name, &cluster.servers()[0]);
    let holder = runtime_at(&cluster.url()).await;
    let held = holder.lock(&**name).expect("a name").acquire().await.expect("a lease");
    let mut waiting = JoinSet::new();
    for _ in 0..WAITING {
        let lock = runtime_at(&cluster.url()).await.lock(&**name).expect("a name");
        waiting.spawn(async move { lock.acquire().wait(4 * wait::CEILING).await });
    }
    let all_listen = || channels(master).len() == usize::from(WAITING);
    wait::until("all listen at the master", all_listen).await;
    let moves = slot_of(&channels(master)[0]);
    block_in_place(|| cluster.migrate(moves, 1));
    wait::until("most are refused", || refused(master) > u64::from(WAITING / 2)).await;
    block_in_place(|| cluster.migrate(moves, 0));
    wait::until("all listen at the master again", all_listen).await;
    drop(waiting);
    held.release().await.expect("a lease that was held to the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_may_not_listen_there_is_told_on_its_plain_channel() {
    let cluster = RedisCluster::start();
    let name = &a_name_for_each()[0];
    let master = &cluster.servers()[0];
    if has_sharded_channels(master) {
        for server in cluster.servers() {
            server.command(&["ACL", "SETUSER", "default", "-ssubscribe"]);
        }
    }
    let both = [runtime_at(&cluster.url()).await, runtime_at(&cluster.url()).await];
    let before = crossed(master);
    hand_over(name, &both, 20).await;
    assert!(crossed(master) - before >= 20, "each is published on a plain channel");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_connection_is_cut_is_told_on_its_plain_channel() {
    let Some((cluster, name)) = with_sharded_channels() else { return };
    let (name, master) = (&name, &cluster.servers()[0]);
    let both = both_listen(&cluster.url(), master, name).await;
    // They may not come back.
    for server in cluster.servers() {
        server.command(&["ACL", "SETUSER", "default", "-ssubscribe"]);
        server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    }
    wait::until("nobody listens", || channels(master).is_empty()).await;
    let before = crossed(master);
    hand_over(name, &both, 20).await;
    assert!(crossed(master) - before >= 15, "they are published on plain channels");
}
