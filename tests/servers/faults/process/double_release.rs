use std::{sync::Arc, time::Duration};

use leasehold::{
    LockName, LockRuntime,
    redis::RedisConfig,
    store::Inspection,
    time::{Clock, SystemClock},
};
use leasehold_core::{
    Entropy, SystemEntropy,
    store::{Ask, LeaseRecord, Release, ReleaseAnswer},
};
use leasehold_redis::RedisStore;
use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{matrix::row, wait};

row! {
    double_release: protected, control;
    fault: "a lock is released by its last holder after a pause, by strangers, and twice",
    right: "each wrong release returns an error, and changes nothing",
    control: "a release that deletes the key (DEL)",
}

/// The holder is stopped for as long.
const TTL: Duration = Duration::from_secs(1);
/// Far longer than this row takes.
const LONG: Duration = Duration::from_secs(60);
const LOCK: &str = "naive";

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let locks = scene::runtime_at(&server.url(), LONG).await;
        let mut paused = scene::holder(scene::HOLDER, &server, TTL, "");
        let old = record(&locks).await;
        paused.stop();
        let guard = scene::take(&locks, "a").await;
        let new = record(&locks).await;
        assert!(new.fence > old.fence);

        // The last holder.
        scene::go(&server, scene::HOLDER);
        paused.cont();
        assert_eq!(paused.wait_for_line("looked ", wait::CEILING), "lost");
        assert!(paused.wait_for_line("told ", wait::CEILING).starts_with("Lost"));
        for what in ["reentered ", "released "] {
            let answer = paused.wait_for_line(what, wait::CEILING);
            assert!(answer.contains("Err(Lost") && answer.contains("\"a\""), "{what}{answer}");
        }
        // Strangers.
        let store = store_at(&server).await;
        for (id, fence) in [(old.id, old.fence), (old.id, new.fence), (new.id, old.fence)] {
            assert_eq!(
                release(&store, Release { id, fence, ..order(name(), &new) }).await,
                ReleaseAnswer::Gone
            );
        }
        let now = record(&locks).await;
        assert_eq!((now.id, now.fence), (new.id, new.fence));
        assert!(guard.is_held() && guard.reenter().await.is_ok());

        // Twice.
        guard.release().await.expect("a lease that was held to the end");
        assert_eq!(release(&store, order(name(), &new)).await, ReleaseAnswer::Gone);
        let _ = locks.shutdown(wait::CEILING).await;
        scene::assert_clean(&server);
        "5 wrong releases answered; the holder kept its lease".into()
    })
}

fn name() -> LockName {
    LockName::new("a").expect("a name")
}

async fn record(locks: &LockRuntime) -> LeaseRecord {
    let Ok(Inspection::Held(record)) = locks.inspect("a").await else { panic!("nobody has it") };
    record
}

async fn store_at(server: &RedisServer) -> RedisStore {
    let config = RedisConfig::new(&server.url()).expect("an address");
    let (handle, id) = (tokio::runtime::Handle::current(), SystemEntropy.runtime_id());
    let connecting = RedisStore::connect(&config, Arc::new(SystemClock), handle, id);
    connecting.await.expect("the server answers")
}

/// The release of a lease.
fn order(name: LockName, record: &LeaseRecord) -> Release {
    Release { name, id: record.id, fence: record.fence, keep: None, next: None }
}

async fn release(store: &RedisStore, release: Release) -> ReleaseAnswer {
    let deadline = SystemClock.now() + wait::CEILING;
    store.ask(release, deadline).await.expect("an answer")
}

fn control() -> String {
    let server = RedisServer::start();
    let take = |who: &str| {
        let taken: Option<String> =
            server.query(&["SET", LOCK, who, "NX", "PX", &TTL.as_millis().to_string()]);
        taken.is_some()
    };
    assert!(take("first"));
    wait::block_until("the first lease runs out", || take("second"));
    // The first holder goes on, and gives back what it believes to have.
    assert!(server.query::<bool>(&["DEL", LOCK]));
    assert!(take("third"), "the control kept the second lease");
    "the late release ended another's lease: two holders".into()
}
