//! A network whose round trips are longer than the time that a heartbeat has for its answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold::{
    LockRuntime,
    error::AcquireError,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{FaultProxy, RedisServer};

use crate::support::patient;

async fn use_lock(locks: &LockRuntime, name: &str) {
    let guard = locks.lock(name).expect("a name").acquire().await.expect("a lease");
    guard.release().await.expect("held to the end");
}

/// Half of the round trip.
const WAY: Duration = Duration::from_millis(225);

/// A heartbeat has a third of it.
const WINDOW: Duration = Duration::from_secs(1);

/// How long each lease is held.
const HOLD: Duration = Duration::from_millis(60);

#[derive(Debug, Default)]
struct Seen {
    leases: AtomicUsize,
    unavailable: AtomicUsize,
}

/// Takes a lock again and again, in turn with a wait and with a try.
async fn contend(locks: LockRuntime, seen: Arc<Seen>, time: Duration) {
    let lock = locks.lock("contended").expect("a name");
    let until = SystemClock.now() + time;
    for round in 0.. {
        if SystemClock.now() >= until {
            return;
        }
        let outcome = match round % 2 {
            0 => lock.try_acquire().await,
            _ => lock.acquire().wait(WINDOW * 4).await.map(Some),
        };
        match outcome {
            Ok(Some(guard)) => {
                seen.leases.fetch_add(1, Ordering::Relaxed);
                // Longer than a turn lasts while others wait: most leases are a grant of the
                // server, and not handed on within a process.
                SystemClock.sleep_until(SystemClock.now() + HOLD).await;
                let _ = guard.release().await;
            }
            Ok(None) | Err(AcquireError::Timeout(_)) => {}
            // Heartbeats have too little time for their answers; others are answered.
            Err(AcquireError::Unavailable(outage)) if outage.answers_others => {}
            Err(AcquireError::Unavailable(outage)) => {
                eprintln!("{outage}");
                seen.unavailable.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// How many leases are granted is another matter: with such a window they are few.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_network_is_no_outage_and_keeps_its_connections() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    proxy.delay_all(WAY);
    let (seen, mut tasks) = (Arc::<Seen>::default(), Vec::new());
    for _ in 0..2 {
        let builder = patient::builder().claim_window(WINDOW).ttl(Duration::from_secs(10));
        let locks = builder.connect(&proxy.url()).await.expect("the server answers");
        // A connection that is not made yet costs the first command four round trips.
        use_lock(&locks, "contended").await;
        for _ in 0..3 {
            tasks.push(tokio::spawn(contend(
                locks.clone(),
                Arc::clone(&seen),
                Duration::from_secs(10),
            )));
        }
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    let (accepted, leases) = (proxy.counts().accepted, seen.leases.load(Ordering::Relaxed));
    eprintln!("{accepted} connections, {leases} leases, {seen:?}");
    assert_eq!(seen.unavailable.load(Ordering::Relaxed), 0, "nothing was wrong");
    // Of each process: 2 for commands, 1 for renewals, 2 to subscribe, 4 in the pool.
    assert!(accepted <= 18, "{accepted} connections were made");
    assert!(leases > 0, "nobody got the lock");
}
