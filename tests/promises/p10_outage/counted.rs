use leasehold_core::metric::names;
use leasehold_testkit::{CommandKind, Fault, Rule};
use metrics_util::debugging::DebuggingRecorder;

use super::outage;
use crate::support::{Seen, Waiting, World, definite, lock, secs};

/// Contention and positions are what the server said, or what this process knows; never failures.
#[tokio::test]
async fn failures_are_no_contention() {
    let recorder: &'static DebuggingRecorder = Box::leak(Box::new(DebuggingRecorder::new()));
    let _listening = metrics::set_default_local_recorder(recorder);
    let seen = Seen::in_recorder(recorder);
    let of = |name: &str| seen.count(&format!("{name}{{class=default}}"));
    let ended = |outcome: &str| {
        let series = format!("{}{{class=default,outcome={outcome}}}", names::ACQUIRE_TOTAL);
        seen.count(&series)
    };

    let world = World::new();
    let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    let mut waiting = Vec::new();
    for _ in 0..10 {
        waiting.push(Waiting::on(lock(&locks).acquire()));
        world.settle().await;
    }
    world.pass(secs(6)).await;
    for waiting in waiting {
        outage(waiting).await;
    }
    let tried = lock(&locks);
    let trying = tokio::spawn(async move { tried.try_acquire().await });
    world.pass(secs(2)).await;
    assert!(trying.await.unwrap().is_err());
    assert_eq!((of(names::CONTENDED_TOTAL), of(names::QUEUE_POSITION)), (0, 0));
    assert_eq!((ended("unavailable"), ended("timeout"), ended("busy")), (11, 0, 0));

    world.store.heal();
    world.pass(secs(30)).await;
    let held = lock(&others).acquire().await.unwrap();
    let waiting = [Waiting::queued(&world, &locks).await, Waiting::queued(&world, &locks).await];
    assert!(lock(&locks).try_acquire().await.unwrap().is_none());
    held.release().await.unwrap();
    for waiting in waiting {
        waiting.taken_within(&world, secs(2)).await.0.release().await.unwrap();
    }
    assert_eq!((of(names::CONTENDED_TOTAL), of(names::QUEUE_POSITION)), (3, 2));
}

/// A look of `health()` counts as a command of a task does; one about many locks that fails as a whole counts once.
#[tokio::test]
async fn each_command_that_fails_is_one_store_error() {
    let recorder: &'static DebuggingRecorder = Box::leak(Box::new(DebuggingRecorder::new()));
    let _listening = metrics::set_default_local_recorder(recorder);
    let seen = Seen::in_recorder(recorder);
    let errors = || seen.count(&format!("{}{{kind=definite}}", names::STORE_ERRORS_TOTAL));

    let world = World::new();
    let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
    let sent = |kind| u64::try_from(world.store.sent(kind)).unwrap();
    // A process at rest, which is asked for its health.
    assert!(locks.health().is_ready());
    world.store.inject(Rule::new(Fault::Fail(definite())).always());
    world.pass(secs(21)).await;
    let probes = sent(CommandKind::Inspect);
    assert!((8..=15).contains(&probes), "{probes}");
    assert_eq!(errors(), probes);
    world.store.heal();
    world.pass(secs(3)).await;
    // One heartbeat has the places of all who wait.
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    for number in 0..5 {
        let name = format!("many/{number}");
        held.push(others.lock(&name).unwrap().acquire().await.unwrap());
        waiting.push(Waiting::on(locks.lock(&name).unwrap().acquire()));
    }
    world.settle().await;
    let beats = sent(CommandKind::Heartbeat);
    let refusal = Rule::new(Fault::Fail(definite())).on(CommandKind::Heartbeat);
    world.store.inject(refusal.times(1));
    world.until("a heartbeat", async || sent(CommandKind::Heartbeat) > beats).await;
    world.settle().await;
    assert_eq!(errors(), probes + 1);
}
