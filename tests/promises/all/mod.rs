//! Several locks at once: all or nothing within one wait, in one order for everybody.

mod cancelled;

use std::{pin::Pin, time::Duration};

use leasehold::{
    AllGuard, LockName, LockRuntime, LossReason, Released,
    error::{
        AcquireError, NameError, OptionsError, ReleaseError, StoreError, StoreErrorKind, WithError,
    },
    fencing::{FenceGate, MemoryGate},
};
use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{World, is_taken_away, millis, on_every_store, poll_once, secs};

const NAMES: [&str; 3] = ["c", "a", "b"];

async fn all(locks: &LockRuntime) -> AllGuard {
    locks.all(NAMES).unwrap().acquire().await.unwrap()
}

/// Which of the locks somebody holds.
async fn taken(world: &World) -> Vec<&'static str> {
    let mut taken = Vec::new();
    for name in ["a", "b", "c"] {
        if world.holder(name).await.is_some() {
            taken.push(name);
        }
    }
    taken
}

async fn until_free(world: &World) {
    for name in NAMES {
        world.until_free(name).await;
    }
}

on_every_store! {
    async fn all_are_held_and_released_together(world: World) {
        let locks = world.runtime(1);
        let guard = all(&locks).await;
        assert!(guard.are_held() && guard.remaining() > Duration::ZERO);
        for name in NAMES {
            let held = world.holder(name).await.unwrap();
            assert_eq!((held.fence, held.id), (guard[name].fence(), guard[name].id()));
            assert_eq!(guard[name].stamp().fence, held.fence);
        }
        assert!(guard.get("d").is_none());
        let order: Vec<_> = guard.stamps().map(|(name, _)| name.as_str().to_owned()).collect();
        assert_eq!(order, ["a", "b", "c"]);
        assert_eq!(guard.release().await.unwrap(), [Released::Ended; 3]);
        assert!(taken(&world).await.is_empty());

        let guard = all(&locks).await;
        let leases = guard.leases();
        drop(guard);
        assert!(!leases.are_held(), "at once");
        until_free(&world).await;
    }

    async fn one_that_is_taken_is_waited_for_and_the_others_are_held_meanwhile(world: World) {
        let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
        let b = other.lock("b").unwrap().acquire().await.unwrap();
        let waiting = tokio::spawn(locks.all(NAMES).unwrap().acquire().wait(secs(600)));
        let line = world.clone();
        world.until("it waits for b", async || line.holder("b").await.is_some_and(|held| !held.waiters.is_empty())).await;
        assert_eq!(taken(&world).await, ["a", "b"], "c comes last");
        b.release().await.unwrap();
        let guard = waiting.await.unwrap().unwrap();
        assert!(guard.are_held());
        guard.release().await.unwrap();
    }

    async fn a_try_takes_all_or_nothing(world: World) {
        let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
        let c = other.lock("c").unwrap().acquire().await.unwrap();
        assert!(locks.all(NAMES).unwrap().try_acquire().await.unwrap().is_none());
        for name in ["a", "b"] {
            world.until_free(name).await;
        }
        c.release().await.unwrap();
        let guard = locks.all(NAMES).unwrap().try_acquire().await.unwrap().expect("all are free");
        guard.release().await.unwrap();
    }

    async fn a_closure_runs_under_all_of_them(world: World) {
        let locks = world.runtime(1);
        let gate = MemoryGate::new();
        let three = locks.all(NAMES).unwrap();
        let ran = three.with(|leases| {
            let gate = &gate;
            async move {
                for (name, stamp) in leases.stamps() {
                    gate.admit(name.as_str(), stamp).await.map_err(|_| "refused")?;
                }
                Ok::<_, &str>(leases.iter().count())
            }
        });
        assert_eq!(ran.await.unwrap(), 3);
        assert!(taken(&world).await.is_empty(), "with waits for the release");
    }

    async fn an_owner_reenters_what_it_holds(world: World) {
        let locks = world.runtime(1);
        let owner = locks.owner();
        let outer = locks.lock("b").unwrap().acquire().owner(&owner).await.unwrap();
        let guard = locks.all(NAMES).unwrap().acquire().owner(&owner).await.unwrap();
        assert_eq!(guard["b"].fence(), outer.fence());
        let inner = owner.scope(async { all(&locks).await }).await;
        assert_eq!(inner["a"].fence(), guard["a"].fence());
        inner.release().await.unwrap();
        let released = guard.release().await.unwrap();
        let [Released::Ended, Released::StillHeld(one), Released::Ended] = released[..] else { panic!("{released:?}") };
        assert_eq!(one.get(), 1);
        assert_eq!(taken(&world).await, ["b"]);
        outer.release().await.unwrap();
    }

    async fn the_first_loss_is_told_and_names_its_lock(world: World) {
        let locks = world.runtime(1);
        let guard = all(&locks).await;
        locks.force_release("b").await.unwrap();
        let mut until_lost = guard.lost();
        let lost = (&mut until_lost).await;
        // A loop around `select!` polls it on.
        assert!(poll_once(Pin::new(&mut until_lost)).is_pending(), "a loss is told once");
        assert_eq!(lost.lock.as_str(), "b");
        assert!(is_taken_away(lost.reason), "{lost}");
        assert!(!guard.are_held() && guard["a"].is_held());
        let error = guard.release().await.unwrap_err();
        assert!(matches!(&error, ReleaseError::Lost(lost) if lost.lock.as_str() == "b"), "{error}");
        assert!(taken(&world).await.is_empty(), "the others are released all the same");
    }
}

#[tokio::test]
async fn one_wait_is_for_all() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    let [b, c] = ["b", "c"].map(|name| other.lock(name).unwrap());
    let b = b.acquire().await.unwrap();
    let _c = c.acquire().await.unwrap();
    let waiting = tokio::spawn(locks.all(NAMES).unwrap().acquire().wait(secs(5)));
    world.pass(secs(3)).await;
    drop(b);
    world.pass(secs(1)).await;
    assert_eq!(taken(&world).await, ["a", "b", "c"]);
    world.pass(secs(1)).await;
    world.pass(millis(300)).await;
    let error = waiting.await.unwrap().unwrap_err();
    let AcquireError::Timeout(timeout) = &error else { panic!("{error}") };
    assert_eq!(timeout.lock.as_str(), "c");
    assert!((secs(5)..secs(6)).contains(&timeout.waited), "of the whole call: {error}");
    world.settle().await;
    assert_eq!(taken(&world).await, ["c"], "what it had is given back");
}

#[tokio::test]
async fn a_lease_that_is_lost_while_others_are_waited_for_fails_the_call() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    let _c = other.lock("c").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.all(NAMES).unwrap().acquire().wait(secs(60)));
    world.pass(secs(1)).await;
    other.force_release("a").await.unwrap();
    world.pass(millis(10)).await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(&error, AcquireError::Lost(lost) if lost.lock.as_str() == "a"), "{error}");
    world.pass(secs(1)).await;
    assert_eq!(taken(&world).await, ["c"]);
    assert!(world.holder("c").await.unwrap().waiters.is_empty(), "nothing stands in line");
}

#[tokio::test]
async fn a_shutdown_ends_the_wait_as_any_other() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    let _c = other.lock("c").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.all(NAMES).unwrap().acquire());
    world.pass(secs(1)).await;
    let (report, ()) = tokio::join!(biased; locks.shutdown(secs(5)), world.pass(secs(1)));
    assert!(report.unreleased.is_empty(), "{report:?}");
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, AcquireError::ShutDown { draining: false, .. }), "{error}");
    assert_eq!(taken(&world).await, ["c"]);
}

#[tokio::test]
async fn a_minimum_counts_from_the_last_grant_and_a_call_that_fails_closes_nothing() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    let closing = || locks.all(NAMES).unwrap().acquire().min_hold(secs(60));
    let c = other.lock("c").unwrap().acquire().await.unwrap();
    let failing = tokio::spawn(closing().wait(secs(1)));
    world.pass(millis(1_300)).await;
    failing.await.unwrap().unwrap_err();
    world.settle().await;
    assert_eq!(taken(&world).await, ["c"]);

    let waiting = tokio::spawn(closing());
    world.pass(secs(4)).await;
    drop(c);
    world.pass(secs(1)).await;
    let released = waiting.await.unwrap().unwrap().release().await.unwrap();
    for kept in released {
        let Released::Kept { remaining } = kept else { panic!("{kept:?}") };
        assert!((secs(58)..=secs(60)).contains(&remaining), "{remaining:?}");
    }
    assert_eq!(taken(&world).await, ["a", "b", "c"], "kept closed");
}

#[tokio::test]
async fn a_body_is_stopped_by_the_first_loss() {
    let world = World::new();
    let locks = world.runtime(1);
    let three = locks.all(NAMES).unwrap();
    let running =
        tokio::spawn(async move { three.with(|_| std::future::pending::<Result<(), ()>>()).await });
    world.pass(secs(1)).await;
    locks.force_release("c").await.unwrap();
    world.pass(millis(10)).await;
    let error = running.await.unwrap().unwrap_err();
    assert!(matches!(&error, WithError::Lost(lost) if lost.lock.as_str() == "c"), "{error:?}");
    world.settle().await;
    assert!(taken(&world).await.is_empty());
}

#[tokio::test]
async fn a_limit_counts_from_each_grant() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.all(["a", "b"]).unwrap().acquire().max_hold(secs(3)).await.unwrap();
    world.pass(millis(3_001)).await;
    assert_eq!(guard.lost().await.reason, LossReason::MaxHold);
}

#[tokio::test]
async fn the_order_is_that_of_the_names_and_each_counts_once() {
    let locks = World::new().runtime(1);
    let order = |names: &[&str]| {
        let all = locks.all(names).unwrap();
        all.names().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(order(&["b", "a", "b", "ä", "B"]), ["B", "a", "b", "ä"]);
    let twice = locks.all(["a", "a"]).unwrap().acquire().await.unwrap();
    assert_eq!(twice.release().await.unwrap(), [Released::Ended]);
}

#[tokio::test]
async fn bad_input_is_refused_before_anything_is_sent() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    assert!(matches!(locks.all([""; 0]), Err(NameError::None)));
    assert!(matches!(locks.all(["a", ""]), Err(NameError::Empty)));
    let three = locks.all(NAMES).unwrap();
    let closed = secs(86_400) + millis(1);
    let foreign = other.owner();
    for acquire in [
        three.acquire().ttl(millis(99)),
        three.acquire().wait(OptionsError::MAX_WAIT + millis(1)),
        three.acquire().max_hold(Duration::ZERO),
        three.acquire().min_hold(closed),
        three.acquire().outage_patience(millis(9)),
        three.acquire().owner(&foreign),
    ] {
        let error = acquire.await.unwrap_err();
        assert!(
            matches!(error, AcquireError::Options { .. } | AcquireError::ForeignOwner { .. }),
            "{error}"
        );
    }
    assert_eq!(world.store.sent(CommandKind::Acquire), 0);
}

#[tokio::test]
async fn a_refusal_of_one_gives_the_others_back() {
    let world = World::new();
    let locks = world.runtime(1);
    let failure = StoreError::new(StoreErrorKind::Config, "it fails", "try again");
    let rule = Rule::new(Fault::Fail(failure)).on(CommandKind::Acquire);
    world.store.inject(rule.lock(&LockName::new("b").unwrap()));
    let error = locks.all(NAMES).unwrap().acquire().await.unwrap_err();
    assert!(matches!(&error, AcquireError::Store(store) if store.lock().unwrap().as_str() == "b"));
    world.settle().await;
    assert!(taken(&world).await.is_empty());
}

/// Two callers that overlap, again and again, and in the opposite order: neither waits in vain.
#[tokio::test]
async fn callers_that_overlap_do_not_wait_for_each_other() {
    let world = World::new();
    let mut tasks = Vec::new();
    for (seed, names) in [["a", "b", "c"], ["c", "b", "a"], ["b", "a", "c"]].into_iter().enumerate()
    {
        let locks = world.runtime(u64::try_from(seed).unwrap() + 1);
        let clock = world.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..20 {
                let guard = locks.all(names).unwrap().acquire().wait(secs(20)).await.unwrap();
                clock.pass_quietly(millis(10)).await;
                assert!(guard.are_held());
                guard.release().await.unwrap();
            }
        }));
    }
    world.pass(secs(5)).await;
    for task in tasks {
        assert!(task.is_finished());
        task.await.unwrap();
    }
}
