use leasehold::store::Inspection;
use leasehold_testkit::{LockText, RedisServer};

use super::scene::{LONG, connect, exists, key, use_lock};
use crate::support::{
    forger::{self, Dropped, Forger, GREATEST, counting},
    idle,
    matrix::row,
    wait,
};

row! {
    forged_message: protected, control;
    fault: "somebody who may publish and has no keys sends grants, ends and recalls with guessed numbers",
    right: "every message is dropped and counted: no believer, no lease, watermark, key or memory changes",
    control: "a waiter that believes its channel",
}

/// How many names are made up.
const NAMES: usize = 100_000;
/// 23 hours in microseconds: a script ignores a watermark that is a day ahead.
const FAR_AHEAD: u64 = 23 * 3600 * 1_000_000;

fn protected() -> String {
    counting(waiters_do_not_believe);
    counting(leases_do_not_end);
    counting(watermarks_stay);
    counting(nothing_is_kept_of_unknown_names);
    counting(idle_locks_stay);
    format!("grants, ends, recalls, and {NAMES} messages about unknown names: all dropped")
}

async fn waiters_do_not_believe(mut dropped: Dropped) {
    let server = RedisServer::start();
    let mut forger = Forger::of(&server);
    let (holder, waiter) = (connect(&server.url()).await, connect(&server.url()).await);
    let held = holder.lock("a").expect("a name").acquire().await.expect("it is free");
    let waits = waiter.lock("a").expect("a name").acquire().wait_forever();
    let waits = tokio::spawn(waits);
    wait::until("it waits", || exists(&server, &key("a", "queue"))).await;
    wait::until("it listens", || forger.runtimes().contains(&waiter.id().to_string())).await;

    for fence in [held.fence().get() + 1, GREATEST] {
        forger.grant(waiter.id(), "a", fence);
        wait::until("it is dropped or believed", || {
            waits.is_finished() || dropped.count() >= forger.said
        })
        .await;
        assert!(!(waits.is_finished() && held.is_held()), "two believers");
    }
    held.release().await.expect("held to the end");
    let granted = wait::soon("it has the lock", waits).await.expect("no panic").expect("a lease");
    let text = LockText::of(&server, &key("a", "lease"));
    assert_eq!(granted.fence().get(), text.lease().fence, "a fence that no server granted");
    granted.release().await.expect("held to the end");
}

async fn leases_do_not_end(mut dropped: Dropped) {
    let server = RedisServer::start();
    let mut forger = Forger::of(&server);
    let holder = connect(&server.url()).await;
    let held = holder.lock("a").expect("a name").acquire().await.expect("it is free");
    wait::until("it listens", || forger.runtimes().len() == 1).await;
    // Fences are no secret: storages, logs and traces have them.
    forger.tell_holder("force-released", holder.id(), "a", held.fence().get());
    wait::until("it is dropped or believed", || !held.is_held() || dropped.count() >= forger.said)
        .await;
    held.release().await.expect("a forged message ended no lease");
}

async fn watermarks_stay(mut dropped: Dropped) {
    let server = RedisServer::start();
    let mut forger = Forger::of(&server);
    let locks = connect(&server.url()).await;
    let before = use_lock(&locks, "a").await;
    wait::until("it listens", || forger.runtimes().len() == 1).await;
    forger.grant(locks.id(), "a", before + FAR_AHEAD);
    for _ in 0..10 {
        wait::a_moment().await;
        let fence = use_lock(&locks, "a").await;
        assert!(
            fence < before + FAR_AHEAD,
            "the fences of a lock are {} h ahead",
            (fence - before) / 3_600_000_000
        );
    }
    dropped.all_of(&forger).await;
}

async fn nothing_is_kept_of_unknown_names(mut dropped: Dropped) {
    let server = RedisServer::start();
    let mut forger = Forger::of(&server);
    let locks = connect(&server.url()).await;
    use_lock(&locks, "a").await;
    wait::until("it listens", || forger.runtimes().len() == 1).await;
    let keys = |server: &RedisServer| server.query::<u64>(&["DBSIZE"]);
    let before = keys(&server);
    // In parts: a subscription that is far behind is replaced, and what it has not read is lost.
    for from in (0..NAMES).step_by(1000) {
        forger.grant_unknown(locks.id(), from..from + 1000);
        wait::until("it is dropped or believed", || {
            locks.footprint().watermarks > 1 || dropped.count() >= forger.said
        })
        .await;
    }
    let footprint = locks.footprint();
    assert!(footprint.watermarks == 1 && footprint.pending == 0, "{footprint:?}");
    assert_eq!(keys(&server), before, "keys of names that nobody has used");
}

async fn idle_locks_stay(mut dropped: Dropped) {
    let server = RedisServer::start();
    let mut forger = Forger::of(&server);
    let locks = idle::builder(LONG, LONG / 2).connect(&server.url()).await.expect("it answers");
    idle::make_idle(&locks, "a").await;
    wait::until("it listens", || forger.runtimes().len() == 1).await;
    let lease = LockText::of(&server, &key("a", "lease")).lease().clone();
    forger.tell_holder("wanted", locks.id(), "a", lease.fence);
    for _ in 0..10 {
        wait::a_moment().await;
        let found = locks.inspect("a").await.expect("an answer");
        assert!(
            matches!(found, Inspection::Held(record) if record.idle),
            "a forged message recalled a lock"
        );
    }
    dropped.all_of(&forger).await;
}

fn control() -> String {
    forger::believes_its_channel(&RedisServer::start());
    "the waiter believes, and the holder still has the lock".into()
}
