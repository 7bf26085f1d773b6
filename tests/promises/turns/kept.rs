//! A lock that is kept idle costs nothing while nobody else asks, and goes to the process that does.

use std::time::Duration;

use leasehold::{Guard, LockRuntime, Released, once::Begun, store::Inspection};
use leasehold_testkit::{
    CommandKind, Fault, Rule,
    faulty::{PushFault, PushRule},
};

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

/// A runtime that keeps its locks idle for 5 s, whose block of tokens is not spent at once.
async fn keeping(world: &World) -> LockRuntime {
    let locks = world.start(world.builder(1).keep_idle(secs(5)));
    // From its second use on a name is kept.
    warm_up(world, &locks).await;
    locks
}

/// Takes the lock and releases it; the fence.
async fn use_once(locks: &LockRuntime) -> u64 {
    let guard = lock(locks).acquire().await.unwrap();
    let fence = guard.fence().get();
    assert_eq!(guard.release().await.unwrap(), Released::Ended);
    fence
}

/// Another process, and what it has after so long at most; with how long it took.
async fn taken_by_another(world: &World, within: Duration) -> (LockRuntime, Guard, Duration) {
    let other = world.another_line().runtime(2);
    let waiting = Waiting::on(lock(&other).acquire().wait(secs(20)));
    let (guard, waited) = waiting.taken_within(world, within).await;
    (other, guard, waited)
}

fn commands(world: &World) -> usize {
    let kinds = [CommandKind::Acquire, CommandKind::Release, CommandKind::Renew];
    kinds.into_iter().map(|kind| world.store.sent(kind)).sum()
}

#[tokio::test]
async fn a_lock_that_nobody_else_wants_is_taken_again_without_a_command() {
    let world = World::new();
    let locks = keeping(&world).await;
    let mut last = use_once(&locks).await;
    world.store.clear_log();
    for _ in 0..100 {
        world.pass(millis(10)).await;
        let fence = use_once(&locks).await;
        assert!(fence > last, "{fence} after {last}");
        last = fence;
    }
    assert_eq!(commands(&world), 0);
    let record = world.holder(World::NAME).await.expect("to the server it is held");
    assert!(record.keeps, "others can have it recalled");
}

#[tokio::test]
async fn a_lock_that_is_used_once_is_not_kept() {
    let world = World::new();
    let locks = world.start(world.builder(1).keep_idle(secs(5)));
    use_once(&locks).await;
    assert!(world.holder(World::NAME).await.is_none());
    use_once(&locks).await;
    assert!(world.holder(World::NAME).await.is_some());
}

#[tokio::test]
async fn an_idle_lock_is_not_renewed_and_opens_when_its_time_is_over() {
    let world = World::new();
    let locks = keeping(&world).await;
    use_once(&locks).await;
    world.store.clear_log();
    world.pass(millis(4_990)).await;
    assert!(world.holder(World::NAME).await.is_some());
    assert_eq!(world.store.sent(CommandKind::Renew), 0);
    world.pass(millis(20)).await;
    assert!(world.holder(World::NAME).await.is_none());
}

/// A recall that is lost costs one heartbeat; without recalls another process waits for as long as
/// the lock is kept.
#[tokio::test]
async fn another_process_gets_an_idle_lock_at_once() {
    for (lost, least, most) in [(0, 0, 1), (1, 100, 1_000), (u64::MAX, 4_000, 6_000)] {
        let world = World::new();
        let locks = keeping(&world).await;
        use_once(&locks).await;
        if lost > 0 {
            world.store.inject_push(PushRule::new(PushFault::Lose).times(lost));
        }
        let (_, _guard, waited) = taken_by_another(&world, secs(10)).await;
        assert!((millis(least)..=millis(most)).contains(&waited), "{lost} lost: {waited:?}");
    }
}

#[tokio::test]
async fn a_lock_that_is_wanted_while_it_is_held_goes_on_after_that_lease() {
    let world = World::new();
    let locks = keeping(&world).await;
    use_once(&locks).await;
    let guard = lock(&locks).acquire().await.unwrap();
    let other = world.another_line().runtime(2);
    let waiting = Waiting::queued(&world, &other).await;
    guard.release().await.unwrap();
    let _guard = waiting.taken(&world).await;
}

#[tokio::test]
async fn a_try_of_another_process_waits_for_one_recall() {
    let world = World::new();
    let locks = keeping(&world).await;
    use_once(&locks).await;
    let other = world.another_line().runtime(2);
    let trying = lock(&other);
    let guard = tokio::spawn(async move { trying.try_acquire().await });
    world.pass(millis(1)).await;
    let guard = guard.await.unwrap().unwrap().expect("it is given up");
    guard.release().await.unwrap();

    // While it is held, the try ends after 50 ms.
    let _held = lock(&locks).acquire().await.unwrap();
    let trying = lock(&other);
    let guard = tokio::spawn(async move { trying.try_acquire().await });
    world.pass(millis(60)).await;
    assert!(guard.await.unwrap().unwrap().is_none());
}

/// A try behind a lease that is held, and may be kept, waits no longer than one recall takes.
#[tokio::test]
async fn a_try_behind_a_held_lease_that_keeps_ends_after_the_recall() {
    let world = World::new();
    let locks = keeping(&world).await;
    let _held = lock(&locks).acquire().await.unwrap();
    let other = world.another_line().runtime(2);
    let trying = lock(&other);
    let since = world.now();
    let found = tokio::spawn(async move { trying.try_acquire().await });
    world.pass(millis(49)).await;
    assert!(!found.is_finished(), "after {:?}", world.now().saturating_since(since));
    world.pass(millis(2)).await;
    assert!(found.await.unwrap().unwrap().is_none());
}

/// Two processes that both want a lock again and again are as fast as without keeping.
#[tokio::test]
async fn a_lock_that_was_recalled_is_kept_again_after_three_leases_that_nobody_wanted() {
    let world = World::new();
    let locks = keeping(&world).await;
    use_once(&locks).await;
    let (_, guard, _) = taken_by_another(&world, millis(1)).await;
    guard.release().await.unwrap();
    for _ in 0..3 {
        use_once(&locks).await;
        assert!(world.holder(World::NAME).await.is_none(), "it is not kept");
    }
    use_once(&locks).await;
    assert!(world.holder(World::NAME).await.is_some(), "it is kept again");
}

/// Else the other would have it recalled in turn.
#[tokio::test]
async fn a_lock_is_not_kept_by_the_process_that_had_it_recalled() {
    let world = World::new();
    let locks = keeping(&world).await;
    use_once(&locks).await;
    let other = world.another_line().start(world.builder(2).keep_idle(secs(5)));
    for _ in 0..4 {
        assert!(use_once(&other).await > 0);
        assert!(world.holder(World::NAME).await.is_none(), "it is not kept");
    }
}

#[tokio::test]
async fn shutdown_and_the_end_of_the_runtime_release_idle_locks() {
    for is_dropped in [false, true] {
        let world = World::new();
        let locks = keeping(&world).await;
        use_once(&locks).await;
        assert!(world.holder(World::NAME).await.is_some());
        if is_dropped {
            drop(locks);
            world.settle().await;
        } else {
            let report = locks.shutdown(secs(1)).await;
            assert!(report.held == 0 && report.unreleased.is_empty(), "{report:?}");
        }
        assert!(world.holder(World::NAME).await.is_none(), "dropped: {is_dropped}");
    }
}

#[tokio::test]
async fn a_force_release_ends_an_idle_lock() {
    let world = World::new();
    let locks = keeping(&world).await;
    use_once(&locks).await;
    let _ = locks.force_release(World::NAME).await.unwrap();
    world.store.clear_log();
    use_once(&locks).await;
    assert_eq!(world.store.sent(CommandKind::Acquire), 1, "a new lease");
}

#[tokio::test]
async fn one_lock_can_be_kept_and_the_others_not() {
    let world = World::new();
    let locks = world.runtime(1);
    warm_up(&world, &locks).await;
    let kept = lock(&locks).keep_idle(secs(2));
    kept.acquire().await.unwrap().release().await.unwrap();
    assert!(world.holder(World::NAME).await.is_some());
    let other = locks.lock("other").unwrap();
    other.acquire().await.unwrap().release().await.unwrap();
    assert!(world.holder("other").await.is_none());
    let refused = lock(&locks).keep_idle(secs(10)).acquire().await.unwrap_err().to_string();
    assert!(refused.contains("an idle lock cannot be kept for 10s"), "{refused}");
}

#[tokio::test]
async fn an_inspection_says_whether_a_lock_is_idle() {
    let world = World::new();
    let locks = keeping(&world).await;
    for is_idle in [false, true] {
        let guard = lock(&locks).acquire().await.unwrap();
        let held = if is_idle { guard.release().await.map(|_| None) } else { Ok(Some(guard)) };
        let here = locks.inspect(World::NAME).await.unwrap();
        let Inspection::Held(record) = here else { panic!("{here:?}") };
        assert_eq!((record.keeps, record.idle), (true, is_idle));
        drop(held);
    }
}

/// A drain lets guards end; it is not to keep what they give back.
#[tokio::test]
async fn a_lock_that_is_released_while_the_runtime_drains_is_not_kept() {
    let world = World::new();
    let locks = keeping(&world).await;
    let early = lock(&locks).acquire().await.unwrap();
    let late = locks.lock("late").unwrap().acquire().await.unwrap();
    let draining = locks.clone();
    let drain = tokio::spawn(async move { draining.drain(secs(60)).await });
    world.settle().await;
    assert_eq!(early.release().await.unwrap(), Released::Ended);
    assert!(world.holder(World::NAME).await.is_none(), "no task here can take it any more");
    assert!(!drain.is_finished());
    drop(late);
    world.settle().await;
    assert!(drain.await.unwrap().unreleased.is_empty());
}

/// A turn that goes on for long may be near the end of its belief when a lease that is not renewed
/// ends: the next task is not to get what is left.
#[tokio::test]
async fn the_next_task_gets_a_lease_with_enough_time() {
    let world = World::new();
    let locks = keeping(&world).await;
    let fixed = lock(&locks).acquire().renew(false).await.unwrap();
    let waiting = Waiting::queued(&world, &locks).await;
    let left = fixed.remaining().saturating_sub(millis(20));
    world.pass(left).await;
    fixed.release().await.unwrap();
    let guard = waiting.taken(&world).await;
    assert!(guard.remaining() > secs(2), "{:?} are left", guard.remaining());
}

/// A process that uses a lock all the time, and hears nothing of those who want it, passes it on
/// within a ttl.
#[tokio::test]
async fn a_process_that_hears_no_recall_keeps_others_out_for_one_ttl() {
    let world = World::new();
    let locks = keeping(&world).await;
    world.store.inject_push(PushRule::new(PushFault::Lose).times(u64::MAX));
    let busy = lock(&locks);
    let user = tokio::spawn({
        let world = world.clone();
        async move {
            loop {
                let guard = busy.acquire().wait(secs(60)).await.unwrap();
                world.pass_quietly(millis(500)).await;
                guard.release().await.unwrap();
            }
        }
    });
    world.pass(millis(700)).await;
    let other = world.another_line().runtime(2);
    let waiting = Waiting::on(lock(&other).acquire().wait(secs(300)));
    let (_guard, waited) = waiting.taken_within(&world, secs(100)).await;
    assert!(waited <= secs(11), "after {waited:?}");
    user.abort();
}

#[tokio::test]
async fn a_runtime_that_is_dropped_releases_its_idle_locks_side_by_side() {
    let world = World::new();
    let locks = keeping(&world).await;
    for n in 0..500 {
        let lock = locks.lock(&format!("n{n}")).unwrap();
        for _ in 0..2 {
            lock.acquire().await.unwrap().release().await.unwrap();
        }
    }
    world.slow_down(CommandKind::Release, millis(5));
    world.store.clear_log();
    drop(locks);
    world.pass(millis(100)).await;
    assert_eq!(world.store.sent(CommandKind::Release), 500);
}

/// One slow answer is no outage.
#[tokio::test]
async fn a_lost_release_of_an_idle_lock_does_not_keep_the_others() {
    let world = World::new();
    let locks = keeping(&world).await;
    for n in 0..200 {
        let lock = locks.lock(&format!("n{n}")).unwrap();
        for _ in 0..2 {
            lock.acquire().await.unwrap().release().await.unwrap();
        }
    }
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Release).times(3));
    world.store.clear_log();
    drop(locks);
    world.pass(secs(10)).await;
    assert_eq!(world.store.executed(CommandKind::Release), 197);
}

/// An idle lock would look like a run to others.
#[tokio::test]
async fn a_run_that_has_failed_is_not_kept() {
    let world = World::new();
    let locks = keeping(&world).await;
    for _ in 0..3 {
        let begun = locks.once(World::NAME).unwrap().begin().await.unwrap();
        let Begun::First(run) = begun else { panic!("nobody runs: {begun:?}") };
        run.fail().await.unwrap();
        assert!(world.holder(World::NAME).await.is_none());
    }
    // Nor does it begin with an idle lock, whose label is another.
    use_once(&locks).await;
    assert!(world.holder(World::NAME).await.is_some());
    let once = locks.once(World::NAME).unwrap().label("request 7");
    let begun = once.begin().await.unwrap();
    assert!(matches!(begun, Begun::First(_)), "{begun:?}");
    let record = world.holder(World::NAME).await.expect("it runs");
    assert_eq!((record.label.as_str(), record.keeps), ("request 7", false));
}

/// The bound of idle locks; the one that was idle least recently goes first.
#[tokio::test]
async fn a_runtime_keeps_so_many_locks_and_no_more() {
    const MOST: usize = 16_384;
    let world = World::new();
    let locks = world.start(world.builder(1).ttl(secs(60)).keep_idle(secs(50)));
    for n in 0..MOST + 3 {
        let lock = locks.lock(format!("n{n}")).unwrap();
        for _ in 0..2 {
            lock.acquire().await.unwrap().release().await.unwrap();
        }
    }
    world.settle().await;
    assert_eq!(locks.footprint().watched, MOST);
    for (n, is_kept) in [(0, false), (2, false), (3, true), (MOST + 2, true)] {
        assert_eq!(world.holder(&format!("n{n}")).await.is_some(), is_kept, "n{n}");
    }
}
