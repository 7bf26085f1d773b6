//! P7 on a real server: runtimes are served in the order of their arrival there, by its own times.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold::{
    Guard, LockRuntime, ReentrantLock,
    error::AcquireError,
    store::{FencePolicy, FenceSettings},
};
use leasehold_testkit::RedisServer;
use tokio::task::JoinHandle;

use crate::support::{line, patient, wait};

/// Longer than these tests take: what expires by itself does not help them.
const WINDOW: Duration = Duration::from_secs(30);

type Waiting = JoinHandle<Result<Guard, AcquireError>>;

async fn runtime(server: &RedisServer) -> LockRuntime {
    let builder = patient::builder().ttl(WINDOW * 2).claim_window(WINDOW);
    builder.connect(&server.url()).await.expect("the server answers")
}

fn lock(locks: &LockRuntime) -> ReentrantLock {
    locks.lock("a").expect("a name")
}

fn waiting(locks: &LockRuntime) -> Waiting {
    tokio::spawn(lock(locks).acquire().wait_forever())
}

async fn taken(waiting: Waiting) -> Guard {
    wait::soon("a lease", waiting).await.expect("no panic").expect("a lease")
}

#[tokio::test]
async fn runtimes_are_served_in_the_order_in_which_they_queued() {
    let server = RedisServer::start();
    let mut runtimes = Vec::new();
    for _ in 0..6 {
        runtimes.push(runtime(&server).await);
    }
    let mut guard = lock(&runtimes[0]).acquire().await.expect("a lease");
    let mut queued = VecDeque::new();
    for (n, i) in [3, 1, 5, 2, 4].into_iter().enumerate() {
        queued.push_back((i, waiting(&runtimes[i])));
        line::until_length(&server, n as u64 + 1).await;
    }
    // Three rounds: the one that was served queues again, at the end.
    let mut present = 0;
    for _ in 0..18 {
        queued.push_back((present, waiting(&runtimes[present])));
        line_or_local(&server, &runtimes[present], queued.len() as u64).await;
        let released_at = server.micros();
        guard.release().await.expect("held to the end");
        let (next, waiting) = queued.pop_front().expect("somebody waits");
        guard = taken(waiting).await;
        assert_eq!(guard.id().runtime(), runtimes[next].id());
        let took = line::granted_at(&server) - released_at;
        assert!(took < 5_000_000, "{took} µs from release to grant");
        present = next;
    }
}

/// A runtime that holds the lock queues with its release; until then its task waits here.
async fn line_or_local(server: &RedisServer, holder: &LockRuntime, tasks: u64) {
    wait::until("its task waits here", || holder.footprint().waiting == 1).await;
    assert_eq!(line::length(server), tasks - 1);
}

/// Processes that count plainly, and others: their tasks get the same of a lock.
#[tokio::test]
async fn mixed_settings_have_equal_shares() {
    use FencePolicy::{Counter, TimeFloor};
    for policies in [[Counter, TimeFloor, TimeFloor], [TimeFloor, Counter, Counter], [Counter; 3]] {
        let server = RedisServer::start();
        let (done, leases) = (Arc::<AtomicBool>::default(), Arc::new(Mutex::new([[0_u32; 3]; 3])));
        let mut tasks = Vec::new();
        for (process, policy) in policies.into_iter().enumerate() {
            let builder = patient::builder().fencing(FenceSettings::default().policy(policy));
            let locks = builder.connect(&server.url()).await.expect("the server answers");
            for task in 0..3 {
                let (lock, done, leases) = (lock(&locks), Arc::clone(&done), Arc::clone(&leases));
                tasks.push(tokio::spawn(async move {
                    while !done.load(Ordering::SeqCst) {
                        let guard = lock.acquire().wait(wait::CEILING).await.expect("a lease");
                        leases.lock().expect("no panic")[process][task] += 1;
                        hold(Duration::from_millis(1)).await;
                        guard.release().await.expect("held to the end");
                    }
                }));
            }
        }
        let all = || leases.lock().expect("no panic").concat();
        wait::until("600 leases", || all().iter().sum::<u32>() >= 600).await;
        let shares = all();
        done.store(true, Ordering::SeqCst);
        for task in tasks {
            wait::soon("the end", task).await.expect("no panic");
        }
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        assert!(most * 10 <= least * 12, "{policies:?}: {shares:?}");
    }
}

#[expect(clippy::disallowed_methods, reason = "a hold takes real time")]
async fn hold(time: Duration) {
    tokio::time::sleep(time).await;
}
