//! The promises that a quorum keeps, on real servers. Those that need faults are rows of the fault matrix.

use std::{
    future::{Future, poll_fn},
    task::Poll,
    time::Duration,
};

use leasehold::{ForceReleased, LockRuntime, store::Inspection};
use leasehold_testkit::{Patience, QuorumGroup};
use tokio::task::{JoinSet, block_in_place};

use crate::{
    faults::quorum::scene,
    support::{
        cancel,
        crew::{Crew, Plan},
        patient, wait,
    },
};

const TTL: Duration = Duration::from_secs(1);

async fn two_at(group: &QuorumGroup) -> [LockRuntime; 2] {
    let connect = async || {
        let builder = patient::builder().ttl(TTL).claim_window(TTL);
        builder.connect(group.url()).await.expect("the servers answer")
    };
    [connect().await, connect().await]
}

/// P1, P2: processes that share a lock, on as many servers as there may be.
#[test]
fn fences_grow_and_there_is_one_believer() {
    for nodes in [3, 5, 7] {
        let group = scene::group(nodes);
        let crew = Crew::start(&Plan::PROTECTED, &group.url());
        crew.work(100);
        scene::strictly_right(&crew.finish());
        scene::leaves_nothing(&group);
    }
}

/// P3: a re-entry has the fence of its lease, and after a loss there is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reentry_is_the_same_lease() {
    let group = scene::group(3);
    let [locks, other] = two_at(&group).await;
    let lock = locks.lock("value").expect("a name");
    let guard = lock.acquire().await.expect("a lease");
    let inner = guard.reenter().await.expect("the same lease");
    assert_eq!(inner.fence(), guard.fence());
    inner.release().await.expect("held to the end");
    assert!(guard.is_held());
    let ended = other.force_release("value").await.expect("an answer");
    assert!(
        matches!(ended, ForceReleased::Ended { fence: Some(fence), .. } if fence > guard.fence())
    );
    // P5: it is told at once, not with the next renewal.
    wait::soon("the loss is told", guard.lost()).await;
    assert!(guard.reenter().await.is_err());
    let next = wait::soon("a lease", lock.acquire().wait(wait::CEILING)).await.expect("a lease");
    assert!(next.fence() > guard.fence());
}

/// P4: what is cancelled wherever it stands leaves nothing that others would wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_acquires_leave_nothing() {
    let group = scene::group(3);
    let [locks, other] = two_at(&group).await;
    let lock = locks.lock("value").expect("a name");
    for micros in (0..60).map(|step| step * 20) {
        drop(cancel::after(Duration::from_micros(micros), lock.acquire()).await);
    }
    let free = other.lock("value").expect("a name").acquire().wait(wait::CEILING);
    wait::soon("the lock is free", free).await.expect("a lease").release().await.expect("held");
    assert!(locks.shutdown(wait::CEILING).await.unreleased.is_empty());
    block_in_place(|| scene::leaves_nothing(&group));
}

/// P7 within a process: tasks are served in their order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_process_are_served_in_order() {
    let group = scene::group(3);
    let [locks, _] = two_at(&group).await;
    let lock = locks.lock("value").expect("a name");
    let guard = lock.acquire().await.expect("a lease");
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let lock = lock.clone();
        let mut acquiring = Box::pin(lock.acquire().wait(wait::CEILING));
        // It stands in line when it was polled.
        let polled = poll_fn(|cx| Poll::Ready(acquiring.as_mut().poll(cx).is_pending())).await;
        assert!(polled);
        waiting.push(acquiring);
    }
    guard.release().await.expect("held to the end");
    let mut tasks = JoinSet::new();
    for (number, acquiring) in waiting.into_iter().enumerate() {
        tasks.spawn(async move {
            let guard = acquiring.await.expect("a lease");
            let fence = guard.fence();
            guard.release().await.expect("held to the end");
            (fence, number)
        });
    }
    let mut served = wait::soon("all are served", tasks.join_all()).await;
    served.sort_unstable();
    let order: Vec<_> = served.into_iter().map(|(_, number)| number).collect();
    assert_eq!(order, (0..10).collect::<Vec<_>>());
}

/// P8: the lock of a process that was killed is had after its ttl.
#[test]
fn a_dead_holder_frees_the_lock() {
    let group = scene::group(3);
    let mut crew = Crew::start(&Plan::PROTECTED, &group.url());
    let read = crew.halt(0);
    crew.child(0).kill();
    crew.until_above(read);
}

/// P9: what is idle has an end, and the servers know of nobody who waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaks() {
    let group = scene::group(3);
    let [locks, other] = two_at(&group).await;
    for number in 0..20 {
        let lock = locks.lock(format!("name-{number}")).expect("a name");
        let guard = lock.acquire().await.expect("a lease");
        let contended = other.lock(format!("name-{number}")).expect("a name");
        // A timeout; on a busy machine it may have heard nothing so far.
        let waits = contended.acquire().wait(Duration::from_millis(60)).await;
        assert!(waits.is_err(), "{waits:?}");
        // It is withdrawn in the background: until then the lock may be granted to it.
        let is_alone =
            async || match locks.inspect(format!("name-{number}")).await.expect("an answer") {
                Inspection::Held(lease) => lease.waiters.is_empty().then_some(()),
                Inspection::Free { .. } => None,
            };
        let alone = Patience::of(wait::CEILING).until_async(is_alone).await;
        alone.expect("nobody waits any more");
        guard.release().await.expect("held to the end");
        let found = locks.inspect(format!("name-{number}")).await.expect("an answer");
        assert!(matches!(found, Inspection::Free { .. }), "{found:?}");
    }
    for server in group.servers() {
        let waiting = || block_in_place(|| server.query::<Vec<String>>(&["KEYS", "*:waiters"]));
        wait::until("nobody waits", || waiting().is_empty()).await;
    }
    block_in_place(|| scene::leaves_nothing(&group));
}
