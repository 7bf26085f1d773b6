use std::thread;

use leasehold::{
    LockRuntime, LossReason,
    error::{LeaseLost, ReleaseError},
};
use leasehold_testkit::{CommandKind, Fault, Patience, Rule};
use tokio::runtime::{Builder, Handle};

use crate::support::{World, at_most_polls, on_every_store, secs};

const NAME: &str = World::NAME;

fn alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

on_every_store! {
    async fn a_guard_may_be_dropped_outside_of_tokio(world: World) {
        let locks = world.runtime(1);
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        let inner = guard.reenter().await.unwrap();
        let acquire = locks.lock(NAME).unwrap().acquire();
        thread::spawn(move || drop((inner, acquire, guard))).join().unwrap();
        world.until_free(NAME).await;
    }
}

/// The lock, its guards and acquires keep a runtime alive; the last of them ends its tasks.
#[tokio::test]
async fn dropping_the_runtime_ends_its_tasks() {
    let world = World::new();
    let before = alive();
    let locks = world.runtime(1);
    let lock = locks.lock(NAME).unwrap();
    let guard = lock.acquire().await.unwrap();
    world.settle().await;
    let running = alive();
    assert!(running >= before + 2, "a watchdog and a reaper: {running}");
    drop((locks, lock));
    world.pass(secs(30)).await;
    assert_eq!(alive(), running);
    assert!(guard.is_held(), "the guard is enough");
    drop(guard);
    world.settle().await;
    assert_eq!(alive(), before);
    assert!(world.holder(NAME).await.is_none(), "what was handed over is done before the end");
}

/// Also right after an acquire was cancelled: nothing waits for its claim window.
#[tokio::test]
async fn a_cancelled_acquire_does_not_keep_a_runtime_alive() {
    let world = World::new();
    let before = alive();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::Hang { executed: true }).on(CommandKind::Acquire));
    let acquire = locks.lock(NAME).unwrap().acquire();
    assert!(at_most_polls(1, acquire).await.is_none());
    drop(locks);
    world.settle().await;
    assert_eq!(alive(), before);
    assert!(world.holder(NAME).await.is_none());
}

/// A guard that outlives the tokio runtime can be dropped and released; neither hangs nor panics.
#[test]
fn a_guard_may_outlive_its_tokio_runtime() {
    let world = World::new();
    let tokio = Builder::new_current_thread().build().unwrap();
    let guards = tokio.block_on(async {
        let locks = world.runtime(1);
        let first = locks.lock(NAME).unwrap().acquire().await.unwrap();
        let second = locks.lock("orders/43").unwrap().acquire().await.unwrap();
        world.settle().await;
        (first, second)
    });
    drop(tokio);
    let (dropped, released) = guards;
    drop(dropped);
    let elsewhere = Builder::new_current_thread().build().unwrap();
    let error = elsewhere.block_on(released.release()).unwrap_err();
    let stopped = LossReason::WatchdogStopped;
    assert!(
        matches!(error, ReleaseError::Lost(LeaseLost { reason, .. }) if reason == stopped),
        "{error}"
    );
}

/// A thread of its own renews and cleans up; it ends with the last of its runtime.
#[test]
fn a_runtime_on_its_own_thread_works_from_outside_of_tokio() {
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux lists the threads");
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
        };
        tasks.filter_map(name).filter(|name| name.trim() == "leasehold").count()
    };
    let expect_threads = |count: usize| {
        // A thread names itself when it begins, and its entry goes a little after its end.
        let found = Patience::of(secs(20)).until(|| (threads() == count).then_some(()));
        assert!(found.is_some(), "{} threads instead of {count}", threads());
    };
    let before = threads();
    let locks = LockRuntime::builder().ttl(secs(2)).own_thread().embedded().unwrap();
    // Without a tokio runtime around, it gets a thread of its own unasked.
    let unasked = LockRuntime::embedded().unwrap();
    expect_threads(before + 2);
    let here = Builder::new_current_thread().build().unwrap();
    let guard = here.block_on(async { locks.lock(NAME).unwrap().acquire().await.unwrap() });
    // It is renewed while nobody drives this thread: what is left grows at some time.
    let mut left = guard.remaining();
    let renewed = Patience::of(secs(20)).until(|| {
        let before = std::mem::replace(&mut left, guard.remaining());
        (left > before).then_some(())
    });
    assert!(renewed.is_some() && guard.is_held());
    drop(guard);
    let free = || here.block_on(locks.lock(NAME).unwrap().try_acquire()).unwrap();
    assert!(Patience::of(secs(20)).until(free).is_some());
    drop((locks, unasked));
    expect_threads(before);
}
