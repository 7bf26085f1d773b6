//! The README's example ends well: in this process, on Redis alone and with others, and when one
//! of several copies is killed; and it says what is wrong with a wrong address.

use std::{
    collections::BTreeSet,
    process::{Child, Output},
    time::Duration,
};

use leasehold::{
    Guard, LockRuntime,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{
    Patience, QuorumGroup, RedisServer, cluster::RedisCluster, sentinel::SentinelGroup,
};

use crate::program::{self, LIMIT, finished, text};

/// The lines of a report on a run in which nothing broke.
const REPORTED: [&str; 7] = [
    "orders done     3000 of 3000, each once",
    "stock           never negative",
    "fences          growing",
    "with the fence of their caller",
    "stale write     refused: ",
    "renewal         ",
    "All invariants hold.",
];

/// What is told while it runs, in this order.
const STORY: [&str; 5] = [
    "worker A takes the lock of C194, fence ",
    "the lease of A is over",
    "worker B takes over, fence ",
    "A goes on, and writes under fence ",
    "the storage refuses it: it has seen fence ",
];

/// How many articles there are.
const ARTICLES: usize = 200;

/// So many of its rows are there when a master is killed.
const HALF_WAY: u64 = 1000;

#[test]
fn in_process_it_ends_with_the_report() {
    assert_reported(&finished(start(None)), "1 of this program");
}

#[test]
fn on_redis_one_copy_ends_with_the_report_and_leaves_no_key_without_ttl() {
    let server = RedisServer::start();
    assert_reported(&finished(start(Some(&server.url()))), "1 of this program");
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    // The run is closed: the next copy begins another.
    assert_reported(&finished(start(Some(&server.url()))), "1 of this program");
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[test]
fn at_sentinels_it_ends_well_although_a_master_is_killed_half_way_with_what_no_replica_has() {
    assert_reported(&killed_half_way(None), "1 of this program");
}

/// Cuts the replicas off, and kills the master soon after.
fn killed_half_way(replicas: Option<&str>) -> Output {
    let group = SentinelGroup::start();
    let [master, others @ ..] = group.servers() else { panic!("three servers") };
    let copy = program::start_with("order_pipeline", Some(&group.url()), replicas);
    wait_for_rows(std::slice::from_ref(master), HALF_WAY);
    others.iter().for_each(RedisServer::cut_off);
    // Without replicas, far more rows are there by then than are being written.
    let more = || (rows_at(master) > HALF_WAY + 500).then_some(());
    Patience::of(Duration::from_millis(500)).until(more);
    master.kill();
    others.iter().for_each(RedisServer::rejoin);
    finished(copy)
}

#[test]
fn on_a_cluster_it_ends_well_although_a_master_is_killed_half_way() {
    let cluster = RedisCluster::with_replicas();
    let copy = start(Some(&cluster.url()));
    wait_for_rows(cluster.masters(), HALF_WAY);
    cluster.kill(0);
    let replica = &cluster.servers()[cluster.masters().len()];
    let taken_over = || replica.is_master().then_some(());
    Patience::of(LIMIT).until(taken_over).expect("the replica takes over");
    // Without a replica of its own it could not acknowledge a write.
    cluster.revive(0);
    assert_reported(&finished(copy), "1 of this program");
}

#[test]
fn on_a_quorum_it_ends_well_by_its_address_alone() {
    let group = voting();
    let output = finished(start(Some(&group.url())));
    assert_reported(&output, "1 of this program");
    assert!(text(&output.stdout).contains("with the stock in this process"));
}

#[test]
fn on_a_quorum_it_ends_well_although_a_server_is_killed_half_way() {
    let group = voting();
    let copy = start(Some(&group.url()));
    wait_for_articles(&group, ARTICLES / 2);
    group.kill(1);
    assert_reported(&finished(copy), "1 of this program");
}

#[test]
fn on_a_quorum_two_copies_share_the_stock_of_another_server_although_one_is_killed_half_way() {
    let (group, store) = (voting(), RedisServer::start());
    let copies =
        [(); 2].map(|()| program::start_with_stock("order_pipeline", &group.url(), &store.url()));
    wait_for_rows(std::slice::from_ref(&store), HALF_WAY);
    group.kill(0);
    for output in copies.map(finished) {
        assert_reported(&output, "2 of this program");
    }
    assert_eq!(store.keys_without_ttl(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis_three_copies_share_one_run() {
    let server = RedisServer::builder().tcp().start();
    let barrier = barrier(&server).await;
    let copies = [(); 3].map(|()| start(Some(&server.url())));
    wait_for_copies(&server, 3);
    barrier.release().await.expect("the test gives the article back");
    for output in copies.map(finished) {
        assert_reported(&output, "3 of this program");
    }
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_others_finish_the_orders_of_a_copy_that_is_killed() {
    let server = RedisServer::start();
    let barrier = barrier(&server).await;
    let mut killed = start(Some(&server.url()));
    let other = start(Some(&server.url()));
    wait_for_copies(&server, 2);
    killed.kill().expect("a copy can be killed");
    killed.wait().expect("a killed copy ends");
    barrier.release().await.expect("the test gives the article back");
    assert_reported(&finished(other), "2 shared the work, 1 of them ended early");
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[test]
fn a_wrong_address_ends_it_at_once_and_is_named_without_its_password() {
    for (url, shown) in [
        ("redis://bob:hush-hush@127.0.0.1:1", "redis://127.0.0.1:1"),
        ("redis://bob:hush-hush@no-such-host.invalid:6379", "no-such-host.invalid:6379"),
        ("http://bob:hush-hush@example.org", "http://example.org"),
        ("redis+unix:///no/such/socket?pass=hush-hush", "/no/such/socket"),
    ] {
        let began = SystemClock.now();
        let output = finished(start(Some(url)));
        let took = SystemClock.now().saturating_since(began);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(shown), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        for word in ["hush", "panicked", "Error {", "Inner"] {
            assert!(!error.contains(word), "{word}: {error}");
        }
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        assert!(took < Duration::from_secs(15), "{took:?}");
    }
}

/// Holds an article of the run, so that no copy finishes before the others have joined.
async fn barrier(server: &RedisServer) -> Guard {
    let locks = LockRuntime::connect(&server.url()).await.expect("the server takes the test");
    let lock = locks.lock("order_pipeline/article/H01").expect("the example's lock has a name");
    lock.acquire().await.expect("nobody has the article yet")
}

/// Waits until copies have joined the run and the first shelf was written.
fn wait_for_copies(server: &RedisServer, count: usize) {
    let all_work = || {
        let shelves: Vec<String> = server.query(&["KEYS", "order_pipeline:{*/*}"]);
        let log: Vec<String> = server.query(&["LRANGE", "order_pipeline:{log}", "0", "-1"]);
        let joined = log.iter().filter(|row| row.contains(" joined ")).count();
        (joined == count && !shelves.is_empty()).then_some(())
    };
    Patience::of(LIMIT).until(all_work).expect("the copies begin to work");
}

/// Three independent servers that count at once.
fn voting() -> QuorumGroup {
    let group = QuorumGroup::start(3);
    group.let_vote();
    group
}

/// Waits until locks of so many articles are known to the servers of a quorum.
fn wait_for_articles(group: &QuorumGroup, count: usize) {
    let sold = || {
        let pattern = "leasehold:{order_pipeline/article/*}:lease";
        let locks = |server: &RedisServer| server.query::<Vec<String>>(&["KEYS", pattern]);
        let all: BTreeSet<String> = group.servers().flat_map(locks).collect();
        (all.len() >= count).then_some(())
    };
    Patience::of(LIMIT).until(sold).expect("the copy works");
}

/// Waits until there are so many rows on all shelves of some masters.
fn wait_for_rows(masters: &[RedisServer], count: u64) {
    let written = || (masters.iter().map(rows_at).sum::<u64>() >= count).then_some(());
    Patience::of(LIMIT).until(written).expect("the copy works");
}

/// How many rows there are on all shelves of a master.
fn rows_at(master: &RedisServer) -> u64 {
    let shelves: Vec<String> = master.query(&["KEYS", "order_pipeline:{*/*}"]);
    shelves.iter().map(|shelf| master.query::<u64>(&["LLEN", shelf])).sum()
}

/// The fences of the story, in its order.
fn fences(report: &str) -> Vec<u64> {
    let told = report.lines().filter_map(|line| line.split_once(" s  ")?.1.split_once("fence "));
    let digits = told.map(|(_, rest)| rest.trim_end_matches(|c: char| !c.is_ascii_digit()));
    digits.map(|fence| fence.parse().expect("a fence is a number")).collect()
}

fn start(url: Option<&str>) -> Child {
    program::start("order_pipeline", url)
}

fn assert_reported(output: &Output, copies: &str) {
    program::assert_reported(output, &[&REPORTED[..], &[copies]].concat());
    let report = text(&output.stdout);
    let told = STORY.map(|line| report.find(line).unwrap_or_else(|| panic!("{line}: {report}")));
    assert!(told.is_sorted(), "{report}");
    let fences = fences(&report);
    // A waits until its lease is over, and B has a later one.
    let [old, .., tried, seen] = fences[..] else { panic!("{report}") };
    assert!(old == tried && old < seen, "{report}");
    let error = text(&output.stderr);
    assert!(error.is_empty(), "{error}");
}
