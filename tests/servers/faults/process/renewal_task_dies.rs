use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold::{LeaseEnd, LeaseState, LossReason, fencing::GateError};
use leasehold_testkit::RedisServer;
use tokio::runtime::{Builder, Runtime};

use super::scene;
use crate::support::{matrix::row, naive::NaiveLock, raw, storage, wait};

row! {
    renewal_task_dies: protected, control;
    fault: "the tokio runtime that renews is dropped while another thread uses the guard",
    right: "the holder learns of the loss at once; the late write is refused",
    control: "a task that renews a naive lock, and is not watched",
}

const TTL: Duration = Duration::from_millis(1_200);
const VALUE: &str = "{v}";

/// A tokio runtime with a thread of its own, which dies when it is dropped.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a tokio runtime")
}

fn protected() -> String {
    let (server, storage) = (RedisServer::start(), RedisServer::start());
    let renewing = runtime();
    let (locks, guard) = renewing.block_on(async {
        let locks = scene::runtime_at(&server.url(), TTL).await;
        let guard = scene::take(&locks, "a").await;
        (locks, guard)
    });
    // It does renew.
    let ends_at = scene::ends_at(&server);
    scene::until_passed(&server, ends_at, Duration::ZERO);
    assert!(guard.is_held());
    drop(renewing);
    let state = guard.lease().state();
    assert_eq!(state, LeaseState::Lost(LossReason::WatchdogStopped));
    assert!(!guard.is_held() && guard.remaining().is_zero());
    let ends_at = scene::ends_at(&server);

    let late = wait::on_one_thread(async {
        let end = wait::soon("the loss", guard.lost()).await;
        assert_eq!(end, LeaseEnd::Lost(LossReason::WatchdogStopped));
        let gate = storage::gate_at(&storage.url());
        let others = scene::runtime_at(&server.url(), TTL).await;
        let next = scene::take(&others, "a").await;
        let late = scene::late(&server, ends_at);
        gate.set(VALUE, "new", next.stamp()).await.expect("the newest holder writes");
        let refused = gate.set(VALUE, "late", guard.stamp()).await;
        assert!(matches!(refused, Err(GateError::Stale(_))), "{refused:?}");
        next.release().await.expect("a lease that was held to the end");
        late
    });
    drop((guard, locks));
    scene::assert_clean(&server);
    format!("lost at the first look; the next had it {late} ms after the ttl")
}

fn control() -> String {
    let (server, storage) = (RedisServer::start(), RedisServer::start());
    let renewing = runtime();
    let lost = Arc::new(AtomicBool::new(false));
    let held = renewing.block_on(async {
        let mut lock = NaiveLock::new(raw::connect(&server.url()).await, "a", TTL);
        let held = lock.try_acquire().await.expect("an answer").expect("a free lock");
        tokio::spawn(renew_naively(lock, Arc::clone(&lost)));
        held
    });
    drop(renewing);
    wait::on_one_thread(async {
        let mut lock = NaiveLock::new(raw::connect(&server.url()).await, "a", TTL);
        let mut next = None;
        while next.is_none() {
            next = lock.try_acquire().await.expect("an answer");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        assert!(next.is_some_and(|next| next.fence > held.fence));
    });
    storage.command(&["SET", VALUE, "new"]);
    if !lost.load(Ordering::Relaxed) {
        storage.command(&["SET", VALUE, "late"]);
    }
    assert_eq!(storage.query::<String>(&["GET", VALUE]), "late");
    "two holders; the first, told nothing, overwrote the second's value".into()
}

/// Renews a lease until the server says that it is gone.
async fn renew_naively(mut lock: NaiveLock, lost: Arc<AtomicBool>) {
    while !lost.load(Ordering::Relaxed) {
        let mut renewal = redis::cmd("PEXPIRE");
        renewal.arg(lock.key()).arg(TTL.as_millis().to_string());
        let renewed: bool = renewal.query_async(&mut lock.connection).await.expect("an answer");
        lost.store(!renewed, Ordering::Relaxed);
        tokio::time::sleep(TTL / 3).await;
    }
}
