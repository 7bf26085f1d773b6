//! A server that forgets a lock which a process keeps idle.

use std::time::Duration;

use leasehold::{Guard, LeaseEnd, LockRuntime, LossReason, Released, fencing::GateError};
use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{idle, lease, storage, wait};

/// Far longer than it takes until the idle lock is taken again.
const TTL: Duration = Duration::from_secs(9);
const VALUE: &str = "{v}";
/// How often the idle lock is taken while another process holds the lock.
const LATE: usize = 3;

/// Two processes that both have the lock, because the server has lost its data.
struct Scene {
    server: RedisServer,
    storage: RedisServer,
    /// Has kept the lock idle, and knows nothing yet.
    keeps: LockRuntime,
    others: LockRuntime,
    /// What the others have.
    newer: Guard,
}

impl Scene {
    async fn start(lose: fn(&RedisServer)) -> Self {
        let (server, storage) = (RedisServer::start(), RedisServer::start());
        let builder = idle::builder(TTL, idle::longest(TTL));
        let keeps = builder.connect(&server.url()).await.expect("the server answers");
        let others = scene::connect(&server.url(), TTL).await;
        let last = idle::make_idle(&keeps, "a").await;
        lose(&server);
        let newer = scene::take(&others, "a").await;
        assert!(newer.fence() > last.fence);
        Self { server, storage, keeps, others, newer }
    }

    /// A lease out of the idle lock, older than what the others have.
    async fn take_idle(&self) -> Guard {
        let guard = scene::take(&self.keeps, "a").await;
        assert!(guard.is_held() && guard.fence() < self.newer.fence(), "{guard:?}");
        guard
    }
}

/// Writes under the idle lock meet a gate.
pub(super) fn is_refused(lose: fn(&RedisServer)) -> String {
    scene::run(async {
        let scene = Scene::start(lose).await;
        let gate = storage::gate_at(&scene.storage.url());
        gate.set(VALUE, "new", scene.newer.stamp()).await.expect("the newest holder writes");
        for number in 1..=LATE {
            let guard = scene.take_idle().await;
            let late = gate.set(VALUE, "late", guard.stamp()).await;
            assert!(matches!(late, Err(GateError::Stale(_))), "{late:?}");
            if number < LATE {
                // Nothing is sent: the lock is idle again.
                assert_eq!(guard.release().await.expect("believed in"), Released::Ended);
            } else {
                // Its renewal finds out.
                let end = wait::soon("the loss", guard.lost()).await;
                assert_eq!(end, LeaseEnd::Lost(LossReason::Gone));
            }
        }
        let Scene { server, storage, keeps, others, newer } = scene;
        assert!(newer.is_held(), "{newer:?}");
        let before = newer.fence();
        newer.release().await.expect("held to the end");
        let next = scene::take(&keeps, "a").await;
        assert!(next.fence() > before, "{next:?} after {before}");
        gate.set(VALUE, "next", next.stamp()).await.expect("the newest holder writes");
        assert_eq!(storage.query::<String>(&["GET", VALUE]), "next");
        next.release().await.expect("held to the end");
        for locks in [keeps, others] {
            let report = locks.shutdown(wait::CEILING).await;
            assert_eq!((report.held, report.unreleased), (0, Vec::new()));
        }
        assert_eq!(lease::in_use(&server), [""; 0]);
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("{LATE} late writes refused; the loss reported; the next fence is the greatest")
    })
}

/// Writes under the idle lock meet a storage without a gate.
pub(super) fn is_accepted(lose: fn(&RedisServer)) -> String {
    scene::run(async {
        let scene = Scene::start(lose).await;
        let storage = &scene.storage;
        assert!(scene.newer.is_held());
        storage.command(&["SET", VALUE, "new"]);
        let guard = scene.take_idle().await;
        storage.command(&["SET", VALUE, "late"]);
        assert_eq!(storage.query::<String>(&["GET", VALUE]), "late");
        assert!(scene.newer.is_held(), "nobody else has the lock");
        drop(guard);
        "1 stale write accepted: it overwrote the newer holder's value".into()
    })
}
