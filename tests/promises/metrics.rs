//! What is seen from outside: every metric is emitted by the behaviour that it counts, under a
//! class and never under a name.

use std::pin::pin;

use leasehold::{
    LockRuntime, LossReason, ReentrantLock,
    fencing::{FenceGate, MemoryGate},
};
use leasehold_core::metric::names;
use leasehold_testkit::{
    CommandKind, Fault, Gate, Rule,
    faulty::{PushFault, PushRule},
};
use metrics::LocalRecorderGuard;
use metrics_util::debugging::DebuggingRecorder;

use crate::support::{
    Seen, World, at_most_polls, config, definite, indeterminate, millis, poll_once, secs,
};

const NAME: &str = World::NAME;

/// A world whose tasks all run on this thread, where a recorder listens.
struct Scene {
    world: World,
    locks: LockRuntime,
    seen: Seen,
    _listening: LocalRecorderGuard<'static>,
}

impl Scene {
    fn new() -> Self {
        // Leaked: a guard of a local recorder borrows it, and a test is short.
        let recorder: &'static DebuggingRecorder = Box::leak(Box::new(DebuggingRecorder::new()));
        let seen = Seen::in_recorder(recorder);
        let listening = metrics::set_default_local_recorder(recorder);
        let world = World::new();
        let locks = world.runtime(1);
        Self { world, locks, seen, _listening: listening }
    }

    fn lock(&self) -> ReentrantLock {
        self.locks.lock(NAME).unwrap().class("orders")
    }

    fn acquired(&self, outcome: &str) -> u64 {
        self.seen.count(&format!("leasehold_acquire_total{{class=orders,outcome={outcome}}}"))
    }

    fn released(&self, outcome: &str, via: &str) -> u64 {
        let series = format!("leasehold_release_total{{class=orders,outcome={outcome},via={via}}}");
        self.seen.count(&series)
    }

    fn lost(&self, reason: &str) -> u64 {
        self.seen.count(&format!("leasehold_lost_total{{class=orders,reason={reason}}}"))
    }

    /// How many were woken by a push, by a heartbeat's answer, and by another task.
    fn woken(&self) -> [u64; 3] {
        ["push", "heartbeat", "local"].map(|source| {
            let series = format!("leasehold_wakeups_total{{class=orders,source={source}}}");
            self.seen.count(&series)
        })
    }

    fn of_class(&self, name: &str) -> crate::support::Value {
        self.seen.get(&format!("{name}{{class=orders}}")).unwrap_or_default()
    }
}

#[tokio::test]
async fn acquires_are_counted_by_outcome() {
    let scene = Scene::new();
    let Scene { world, locks, .. } = &scene;
    let (lock, owner) = (scene.lock(), locks.owner());
    let guard = lock.acquire().owner(&owner).await.unwrap();
    assert_eq!(scene.acquired("acquired"), 1);
    let inner = lock.acquire().owner(&owner).await.unwrap();
    assert_eq!(scene.acquired("reentered"), 1);
    assert!(lock.try_acquire().await.unwrap().is_none());
    assert_eq!(scene.acquired("busy"), 1);
    let waiting = tokio::spawn(lock.acquire().wait(secs(1)));
    world.pass(secs(1)).await;
    assert!(waiting.await.unwrap().is_err());
    assert_eq!(scene.acquired("timeout"), 1);
    assert!(poll_once(pin!(lock.acquire())).is_pending());
    assert_eq!(scene.acquired("cancelled"), 1);
    locks.force_release(NAME).await.unwrap();
    assert!(lock.acquire().owner(&owner).await.is_err());
    assert_eq!(scene.acquired("lost"), 1);
    world.store.inject(Rule::new(Fault::Fail(config())).on(CommandKind::Acquire));
    assert!(lock.acquire().await.is_err());
    assert_eq!(scene.acquired("error"), 1);
    drop((guard, inner));
    let _ = locks.shutdown(secs(1)).await;
    assert!(lock.acquire().await.is_err());
    assert_eq!((scene.acquired("error"), scene.acquired("acquired")), (2, 1));
}

#[tokio::test]
async fn waits_are_measured_and_waiters_shown() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let guard = lock.acquire().await.unwrap();
    assert_eq!(scene.of_class(names::ACQUIRE_WAIT_SECONDS).values, [0.0]);
    assert_eq!(scene.of_class(names::CONTENDED_TOTAL).count, 0);
    let waiting = tokio::spawn(lock.acquire());
    world.pass(secs(1)).await;
    assert_eq!(scene.of_class(names::WAITERS).level, 1);
    assert_eq!(scene.woken(), [0, 0, 0], "nobody is woken in vain");
    guard.release().await.unwrap();
    world.settle().await;
    let next = waiting.await.unwrap().unwrap();
    assert_eq!(scene.woken().iter().sum::<u64>(), 1);
    assert_eq!(scene.of_class(names::WAITERS).level, 0);
    assert_eq!(scene.of_class(names::CONTENDED_TOTAL).count, 1);
    assert_eq!(scene.of_class(names::ACQUIRE_WAIT_SECONDS).values, [0.0, 1.0]);
    next.release().await.unwrap();
    // A waiter that is dropped is one no more.
    let guard = lock.acquire().await;
    let mut waiting = Box::pin(lock.acquire());
    assert!(poll_once(waiting.as_mut()).is_pending());
    assert_eq!(scene.of_class(names::WAITERS).level, 1);
    drop(waiting);
    assert_eq!(scene.of_class(names::WAITERS).level, 0);
    drop(guard);
}

/// A share of the acquire calls is never above all of them, while some still wait either.
#[tokio::test]
async fn calls_that_found_the_lock_taken_are_counted_with_their_end() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let guard = lock.acquire().await.unwrap();
    let waits = |_| tokio::spawn(lock.acquire().wait(secs(20)));
    let waiting: Vec<_> = (0..5).map(waits).collect();
    assert!(lock.try_acquire().await.unwrap().is_none());
    world.pass(secs(1)).await;
    let calls = || ["acquired", "busy", "timeout"].map(|outcome| scene.acquired(outcome));
    assert_eq!(calls(), [1, 1, 0]);
    assert_eq!(scene.of_class(names::CONTENDED_TOTAL).count, 1, "five calls go on");
    world.pass(secs(20)).await;
    for one in waiting {
        assert!(one.await.unwrap().is_err());
    }
    assert_eq!(calls(), [1, 1, 5]);
    assert_eq!(scene.of_class(names::CONTENDED_TOTAL).count, 6);
    drop(guard);
}

/// What is stuck is seen while it is, and no longer than a tick after it.
#[tokio::test]
async fn the_oldest_hold_and_the_longest_wait_show_while_they_last() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let gauges = || {
        // In one look, which sets gauges to zero until the next tick.
        let all = scene.seen.all();
        [names::OLDEST_HOLD_SECONDS, names::LONGEST_WAIT_SECONDS]
            .map(|name| all[&format!("{name}{{class=orders}}")].level)
    };
    world.pass(secs(6)).await;
    assert_eq!(gauges(), [0, 0], "while nothing is held");
    let stuck = lock.acquire().await.unwrap();
    world.pass(secs(30)).await;
    let waiting = tokio::spawn(lock.acquire().wait_forever());
    world.settle().await;
    // Others of the class come and go, and hide nothing.
    for n in 0..60 {
        let other = scene.locks.lock(format!("other-{n}")).unwrap().class("orders");
        let guard = other.acquire().await.unwrap();
        world.pass(secs(1)).await;
        guard.release().await.unwrap();
    }
    let [hold, wait] = gauges();
    assert!((85..=90).contains(&hold) && (55..=60).contains(&wait), "{hold} {wait}");
    stuck.release().await.unwrap();
    world.settle().await;
    let next = waiting.await.unwrap().unwrap();
    world.pass(secs(5)).await;
    let [hold, wait] = gauges();
    assert!(hold <= 5 && wait == 0, "{hold} {wait}");
    next.release().await.unwrap();
    world.pass(secs(5)).await;
    assert_eq!(gauges(), [0, 0]);
    // A lease that is lost is held no longer.
    let lost = lock.acquire().renew(false).await.unwrap();
    world.pass(secs(6)).await;
    assert!(gauges()[0] > 0);
    world.pass(secs(9)).await;
    assert_eq!(gauges(), [0, 0]);
    drop(lost);
}

/// Where a waiter stood when it came, what told it, how long that took, and how many tasks a turn
/// served.
#[tokio::test]
async fn hand_overs_are_counted_by_what_told_and_measured() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    // The first grant of a name has one token alone.
    lock.acquire().await.unwrap().release().await.unwrap();
    assert_eq!(scene.of_class(names::TURN_LEASES).values, [1.0]);
    world.pass(millis(20)).await;
    let waits = |lock: &ReentrantLock| tokio::spawn(lock.acquire());
    let (first, second) = (waits(&lock), waits(&lock));
    world.settle().await;
    let third = waits(&lock);
    world.settle().await;
    assert_eq!(scene.of_class(names::QUEUE_POSITION).values, [0.0, 1.0]);
    let guard = first.await.unwrap().unwrap();
    world.pass(millis(2)).await;
    guard.release().await.unwrap();
    assert_eq!(scene.woken(), [0, 0, 0], "it is offered, and not taken yet");
    world.settle().await;
    assert_eq!(scene.woken(), [0, 0, 1]);
    second.await.unwrap().unwrap().release().await.unwrap();
    world.settle().await;
    let third = third.await.unwrap().unwrap();
    assert_eq!(scene.of_class(names::HANDOVER_SECONDS).values, [0.0; 2], "of those who waited");
    assert_eq!(scene.of_class(names::TURN_LEASES).count, 1, "it goes on");
    let other = world.another_line().runtime(2);
    let guard = {
        let lock = other.lock(NAME).unwrap();
        let theirs = tokio::spawn(async move { lock.acquire().await });
        world.settle().await;
        third.release().await.unwrap();
        world.settle().await;
        theirs.await.unwrap().unwrap()
    };
    assert_eq!(scene.of_class(names::TURN_LEASES).values, [1.0, 3.0]);
    let fourth = waits(&lock);
    world.settle().await;
    guard.release().await.unwrap();
    world.settle().await;
    drop(fourth.await.unwrap());
    assert_eq!(scene.woken(), [1, 0, 2]);
}

#[tokio::test]
async fn holds_are_measured_by_their_end_and_held_leases_shown() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let hold = |end: &str| {
        let series = format!("leasehold_hold_seconds{{class=orders,end={end}}}");
        scene.seen.get(&series).unwrap_or_default().values
    };
    for end in ["released", "dropped", "lost"] {
        let guard = lock.acquire().await.unwrap();
        let inner = guard.reenter().await.unwrap();
        assert_eq!(scene.of_class(names::HELD).level, 1, "holds of one lease are one");
        world.pass(secs(20)).await;
        match end {
            "released" => {
                inner.release().await.unwrap();
                guard.release().await.unwrap();
            }
            "dropped" => drop((guard, inner)),
            _ => {
                let _ = scene.locks.force_release(NAME).await.unwrap();
                assert!(guard.reenter().await.is_err());
            }
        }
        world.settle().await;
        assert_eq!(hold(end), [20.0]);
        assert_eq!(scene.of_class(names::HELD).level, 0);
    }
}

#[tokio::test]
async fn renewals_are_counted_by_outcome_and_measured() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let renewals = |outcome: &str| {
        scene.seen.count(&format!("leasehold_renewals_total{{class=orders,outcome={outcome}}}"))
    };
    let guard = lock.acquire().await.unwrap();
    world.pass(secs(10)).await;
    let renewed = renewals("renewed");
    assert!((3..=4).contains(&renewed), "{renewed}");
    let margins = scene.of_class(names::RENEWAL_MARGIN_SECONDS).values;
    assert!(margins.len() as u64 == renewed && margins.iter().all(|m| (6.5..9.9).contains(m)));
    for name in [names::RENEWAL_SECONDS, names::RENEWAL_LAG_SECONDS] {
        assert_eq!(scene.seen.get(name).unwrap().values, vec![0.0; margins.len()], "{name}");
    }
    let faults = [("held", Fault::Fail(definite())), ("unknown", Fault::Fail(indeterminate()))];
    for (outcome, fault) in faults {
        world.store.inject(Rule::new(fault).on(CommandKind::Renew));
        world.pass(millis(3_400)).await;
        assert_eq!(renewals(outcome), 1);
    }
    // One that is told at once needs no renewal to find out.
    world.store.inject_push(PushRule::new(PushFault::Lose));
    let _ = world.runtime(2).force_release(NAME).await.unwrap();
    world.pass(millis(3_400)).await;
    assert_eq!(renewals("lost"), 1);
    assert!(!guard.is_held());
}

/// A healthy service has no low margins: not from a grant that was pushed, which has a claim window
/// at first, and not from a lease whose `max_hold` is near.
#[tokio::test]
async fn margins_tell_of_renewals_that_are_late_and_of_nothing_else() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let margins = || {
        let seconds = scene.of_class(names::RENEWAL_MARGIN_SECONDS).values;
        let ratios = scene.of_class(names::RENEWAL_MARGIN_RATIO).values;
        assert_eq!(seconds.len(), ratios.len());
        assert!(seconds.iter().zip(&ratios).all(|(s, ratio)| (s / 10.0 - ratio).abs() < 1e-9));
        ratios
    };
    let other = world.runtime(2);
    for _ in 0..5 {
        let theirs = other.lock(NAME).unwrap().acquire().await.unwrap();
        let waiting = tokio::spawn(lock.acquire());
        world.pass(millis(100)).await;
        theirs.release().await.unwrap();
        world.settle().await;
        let pushed = waiting.await.unwrap().unwrap();
        world.pass(secs(5)).await;
        pushed.release().await.unwrap();
    }
    assert!(!margins().is_empty() && margins().iter().all(|m| *m > 0.6), "{:?}", margins());
    let short = lock.acquire().max_hold(secs(4)).await.unwrap();
    world.pass(secs(5)).await;
    drop(short);
    assert!(margins().iter().all(|m| *m > 0.6), "{:?}", margins());
    // A renewal that fails until the last moment shows.
    let guard = lock.acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::Fail(definite())).on(CommandKind::Renew).always());
    world.pass(secs(7)).await;
    world.store.heal();
    world.pass(secs(2)).await;
    assert!(guard.is_held() && margins().iter().any(|m| *m < 0.5), "{:?}", margins());
}

/// A slow answer shows in the round trip, a late send in the lag.
#[tokio::test]
async fn slow_and_late_renewals_show() {
    let scene = Scene::new();
    let world = &scene.world;
    let guard = scene.lock().acquire().await.unwrap();
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Renew));
    while gate.arrived() == 0 {
        world.pass(millis(1)).await;
    }
    world.pass(millis(500)).await;
    gate.open();
    world.settle().await;
    let took = scene.seen.get(names::RENEWAL_SECONDS).unwrap().values;
    assert!(took.len() == 1 && (0.5..0.502).contains(&took[0]), "{took:?}");
    // The whole process stands still for 5 s, over the next renewal.
    world.clock().advance(secs(5));
    world.settle().await;
    let lags = scene.seen.get(names::RENEWAL_LAG_SECONDS).unwrap().values;
    assert!(lags.len() == 2 && (2.1..2.6).contains(&lags[1]), "{lags:?}");
    assert!(guard.is_held());
}

#[tokio::test]
async fn losses_are_counted_by_reason() {
    let scene = Scene::new();
    let Scene { world, locks, .. } = &scene;
    let lock = scene.lock();
    let fixed = lock.acquire().renew(false).await.unwrap();
    world.pass(secs(10)).await;
    assert_eq!(scene.lost("expired"), 1, "also when nobody looks at the guard");
    drop(fixed);
    let guard = lock.acquire().max_hold(secs(1)).await.unwrap();
    world.pass(secs(1)).await;
    assert_eq!((scene.lost("max_hold"), scene.released("released", "max_hold")), (1, 1));
    drop(guard);
    for told in [false, true] {
        let guard = lock.acquire().await.unwrap();
        if !told {
            world.store.inject_push(PushRule::new(PushFault::Lose));
        }
        let _ = world.runtime(2).force_release(NAME).await.unwrap();
        assert!(guard.release().await.is_err());
        // One that knows that it is lost releases nothing.
        assert_eq!((scene.lost("gone"), scene.lost("force_released")), (1, u64::from(told)));
        assert_eq!(scene.released("gone", "explicit"), 1);
    }
    let guard = lock.acquire().await.unwrap();
    let _ = locks.shutdown(secs(1)).await;
    assert_eq!((scene.lost("shutdown"), scene.released("released", "shutdown")), (1, 1));
    drop(guard);
    assert_eq!(scene.of_class(names::HELD).level, 0);
}

#[test]
fn the_watchdogs_end_is_counted_as_a_loss() {
    let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (scene, guard) = tokio.block_on(async {
        let scene = Scene::new();
        let guard = scene.lock().acquire().await.unwrap();
        scene.world.settle().await;
        (scene, guard)
    });
    drop(tokio);
    assert_eq!(scene.lost("watchdog_stopped"), 1);
    drop(guard);
    assert_eq!(scene.released("unconfirmed", "drop"), 1);
}

#[tokio::test]
async fn releases_are_counted_by_outcome_and_way() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    lock.acquire().await.unwrap().release().await.unwrap();
    assert_eq!(scene.released("released", "explicit"), 1);
    drop(lock.acquire().await.unwrap());
    world.settle().await;
    assert_eq!(scene.released("released", "drop"), 1);
    world.store.inject(Rule::new(Fault::Fail(config())).on(CommandKind::Release));
    assert!(lock.acquire().await.unwrap().release().await.is_err());
    assert_eq!(scene.released("unconfirmed", "explicit"), 1);
    // What could not be released is withdrawn, and that could be told.
    world.settle().await;
    assert_eq!(scene.released("released", "withdraw"), 1);
    assert!(world.holder(NAME).await.is_none());
    world.store.inject(Rule::new(Fault::Hang { executed: true }).on(CommandKind::Acquire));
    assert!(at_most_polls(1, lock.acquire()).await.is_none());
    world.settle().await;
    assert_eq!(scene.released("released", "withdraw"), 2);
    // One that the runtime goes on with is counted once, by its final outcome.
    let lost = Rule::new(Fault::LoseRequest).on(CommandKind::Release);
    world.store.inject(lost);
    let release = tokio::spawn(lock.acquire().await.unwrap().release());
    world.pass(secs(2)).await;
    assert!(release.await.unwrap().is_err());
    world.pass(secs(1)).await;
    let explicit = ["released", "unconfirmed", "gone"].map(|end| scene.released(end, "explicit"));
    assert_eq!(explicit, [2, 1, 0]);
    // One that keeps the lock closed has an outcome of its own.
    lock.acquire().min_hold(secs(1)).await.unwrap().release().await.unwrap();
    assert_eq!(scene.released("kept", "explicit"), 1);
    world.pass(secs(1)).await;
    drop(lock.acquire().min_hold(secs(1)).await.unwrap());
    world.settle().await;
    assert_eq!(scene.released("kept", "drop"), 1);
    world.pass(secs(1)).await;
    // An inner hold is no release.
    let outer = lock.acquire().await.unwrap();
    outer.reenter().await.unwrap().release().await.unwrap();
    assert_eq!(scene.released("released", "explicit"), 2);
    drop(outer);
}

#[tokio::test]
async fn store_errors_are_counted_by_kind() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let errors =
        |kind: &str| scene.seen.count(&format!("leasehold_store_errors_total{{kind={kind}}}"));
    for (kind, error) in
        [("definite", definite()), ("indeterminate", indeterminate()), ("config", config())]
    {
        world.store.inject(Rule::new(Fault::Fail(error)).on(CommandKind::Acquire));
        assert!(lock.try_acquire().await.is_err());
        assert_eq!(errors(kind), 1, "{kind}");
    }
    // Those of the watchdog and of the reaper count too.
    let guard = lock.acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::Fail(definite())).on(CommandKind::Renew));
    world.pass(millis(3_400)).await;
    assert_eq!(errors("definite"), 2);
    world.store.inject(Rule::new(Fault::Fail(definite())).on(CommandKind::Release));
    drop(guard);
    world.pass(millis(100)).await;
    assert_eq!(errors("definite"), 3);
}

/// An alert sees how long the server has been away, and that it is back.
#[tokio::test]
async fn a_server_out_of_reach_shows_until_it_answers() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let away = || scene.seen.get(names::STORE_UNREACHABLE_SECONDS).unwrap().level;
    let guard = lock.acquire().await.unwrap();
    world.pass(secs(5)).await;
    assert_eq!(away(), 0);
    world.store.inject(Rule::new(Fault::Fail(indeterminate())).always());
    world.pass(secs(30)).await;
    let time = away();
    assert!((20..=30).contains(&time), "{time}");
    world.store.heal();
    world.pass(secs(10)).await;
    assert_eq!(away(), 0);
    drop(guard);
}

#[tokio::test]
async fn fences_refused_and_lost_are_counted() {
    let scene = Scene::new();
    let (world, lock) = (&scene.world, scene.lock());
    let gate = MemoryGate::default();
    let old = lock.acquire().await.unwrap().stamp();
    world.settle().await;
    // The counter is lost, and the clock stands still: the watermark shows it.
    assert_eq!(scene.seen.count(names::FENCE_REGRESSION_TOTAL), 0);
    world.memory().clear();
    let new = lock.acquire().await.unwrap().stamp();
    assert!(new.fence > old.fence);
    assert_eq!(scene.seen.count(names::FENCE_REGRESSION_TOTAL), 1);
    gate.admit("row 42", new).await.unwrap();
    assert!(gate.admit("row 42", old).await.is_err());
    assert_eq!(scene.seen.count("leasehold_fence_rejected_total{gate=memory}"), 1);
}

/// An alert on the first loss needs to have seen a 0 before the 1.
#[tokio::test]
async fn every_series_of_a_class_is_shown_before_it_counts() {
    let scene = Scene::new();
    drop(scene.lock());
    scene.world.pass(secs(5)).await;
    let all = scene.seen.all();
    let of_class = |name: &str| {
        all.keys().filter(|key| key.starts_with(name) && key.contains("{class=orders")).count()
    };
    let expected = [
        (names::ACQUIRE_TOTAL, 8),
        (names::CONTENDED_TOTAL, 1),
        (names::WAITERS, 1),
        (names::LONGEST_WAIT_SECONDS, 1),
        (names::HELD, 1),
        (names::OLDEST_HOLD_SECONDS, 1),
        (names::WAKEUPS_TOTAL, 3),
        (names::RENEWALS_TOTAL, 4),
        (names::LOST_TOTAL, LossReason::ALL.len()),
        (names::RELEASE_TOTAL, 20),
    ];
    for (name, series) in expected {
        assert_eq!(of_class(name), series, "{name}");
    }
    assert_eq!(all.keys().filter(|key| key.starts_with(names::STORE_ERRORS_TOTAL)).count(), 4);
    assert!(all.contains_key(names::FENCE_REGRESSION_TOTAL));
    assert!(all.values().all(|value| value.count == 0 && value.level == 0));
    // A locks' class that comes later is shown at the next tick.
    drop(scene.locks.lock("b").unwrap().class("invoices"));
    scene.world.pass(secs(5)).await;
    assert!(scene.seen.get("leasehold_lost_total{class=invoices,reason=gone}").is_some());
}

/// The tick sets gauges as they stand, whatever the recorder made of them.
#[tokio::test]
async fn gauges_are_absolute() {
    let scene = Scene::new();
    let guards = [
        scene.lock().acquire().await.unwrap(),
        scene.locks.lock("b").unwrap().class("orders").acquire().await.unwrap(),
    ];
    assert_eq!(scene.of_class(names::HELD).level, 2);
    // The recorder forgot it: a look sets its gauges to zero.
    assert_eq!(scene.of_class(names::HELD).level, 0);
    scene.world.pass(secs(5)).await;
    assert_eq!(scene.of_class(names::HELD).level, 2);
    drop(guards);
    assert_eq!(scene.of_class(names::HELD).level, 0);
}

#[tokio::test]
async fn names_never_become_labels_and_every_series_is_described() {
    let scene = Scene::new();
    let world = &scene.world;
    for n in 0..200 {
        let lock = scene.locks.lock(format!("secret-{n}")).unwrap();
        let guard = lock.acquire().await.unwrap();
        assert!(lock.try_acquire().await.unwrap().is_none());
        drop(guard);
    }
    // Classes are bounded: what is too many is counted together.
    for n in 0..200 {
        drop(scene.locks.lock(NAME).unwrap().class(format!("class-{n}")));
    }
    world.pass(secs(5)).await;
    let all = scene.seen.all();
    assert!(all.keys().all(|series| !series.contains("secret")), "{:?}", all.keys());
    assert!(all.values().all(|value| value.described));
    let classes = |series: &&String| series.starts_with("leasehold_held{");
    assert!(all.keys().filter(classes).count() <= 129);
    assert!(all.contains_key("leasehold_held{class=other}"));
}
