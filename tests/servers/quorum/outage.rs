//! What a quorum says of a lock while a majority of its servers is down, or may have what the others do not:
//! nothing, for a minority does not know.

use std::time::Duration;

use leasehold::{Guard, LockRuntime, error::AcquireError, store::Inspection};
use leasehold_testkit::QuorumGroup;
use tokio::task::block_in_place;

use crate::{
    faults::quorum::scene,
    support::{patient, wait},
};

const NAME: &str = "value";
/// Longer than a test takes: nothing ends or is renewed by itself.
const LONG: Duration = Duration::from_secs(60);

async fn connect(group: &QuorumGroup, ttl: Duration) -> LockRuntime {
    let builder = patient::builder().ttl(ttl).claim_window(Duration::from_secs(1));
    builder.connect(group.url()).await.expect("the servers answer")
}

async fn take(locks: &LockRuntime, name: &str) -> Guard {
    wait::soon("a lease", locks.lock(name).expect("a name").acquire()).await.expect("a lease")
}

/// Nobody is called the holder, and the lock not free.
async fn is_unknown(locks: &LockRuntime) {
    let seen = wait::soon("an answer", locks.inspect(NAME)).await;
    assert!(seen.is_err(), "{seen:?}");
    let waits = locks.lock(NAME).expect("a name").acquire().wait(Duration::from_millis(300));
    let error = wait::soon("it ends", waits).await.expect_err("it is taken, or no majority is up");
    assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
    let mut list = locks.list("*").expect("a pattern");
    while let Some(listed) = wait::soon("the list ends", list.next()).await {
        assert!(listed.is_err(), "{listed:?}");
    }
    let graph = wait::soon("a graph", locks.wait_graph()).await;
    assert!(!graph.unread.is_empty(), "{graph:?}");
}

/// P10: in its first second an outage is told as one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_that_ends_in_the_first_second_names_no_holder() {
    for hang in [true, false] {
        let group = block_in_place(|| scene::group(3));
        let locks = connect(&group, LONG).await;
        take(&locks, NAME).await.release().await.expect("held to the end");
        let stop = |number| if hang { group.pause(number) } else { group.kill(number) };
        block_in_place(|| (0..2).for_each(stop));
        for millis in [40, 200, 700] {
            let lock = locks.lock(NAME).expect("a name");
            let waits = lock.acquire().wait(Duration::from_millis(millis));
            let ended = wait::soon("it ends", waits).await;
            let error = ended.expect_err("one of three servers is no majority");
            assert!(matches!(error, AcquireError::Unavailable(_)), "{millis} ms: {error}");
        }
        is_unknown(&locks).await;
    }
}

/// A lease is on two of three servers, of which one is killed: another process cannot know whether the lease is
/// a majority's. Its own process can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_minority_has_is_not_told_as_held() {
    let group = block_in_place(|| scene::group(3));
    let [locks, other] = [connect(&group, LONG).await, connect(&group, LONG).await];
    let guard = take(&locks, NAME).await;
    let holding = block_in_place(|| scene::holding(&group, guard.id()));
    assert_eq!(holding.len(), 2, "{holding:?}");
    block_in_place(|| group.kill(holding[1]));
    is_unknown(&other).await;
    let seen = locks.inspect(NAME).await.expect("it knows its own lease");
    assert!(matches!(seen, Inspection::Held(lease) if lease.fence == guard.fence()));
}

/// Servers that have lost a lease with all their data do not say that the lock is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_lost_their_data_do_not_say_that_a_lock_is_free() {
    let group = block_in_place(|| scene::group(3));
    let ttl = Duration::from_secs(3);
    let [locks, other] = [connect(&group, ttl).await, connect(&group, ttl).await];
    let guard = take(&locks, NAME).await;
    // A renewal has brought it to all.
    let everywhere = || block_in_place(|| scene::holding(&group, guard.id())).len() == 3;
    wait::until("the lease is on all servers", everywhere).await;
    block_in_place(|| {
        for number in 1..3 {
            group.kill(number);
            group.server(number).restart();
        }
    });
    is_unknown(&other).await;
}
