use leasehold::{
    error::{AcquireError, OptionsError},
    once::{Begun, Progress},
};
use leasehold_testkit::CommandKind;

use super::words::{NAME, WINDOW, duplicate, first, submission};
use crate::support::{World, just_before, lock, millis, nanos, on_every_store, secs};

/// The door opens exactly when the window is over, which begins with the success.
#[tokio::test]
async fn duplicates_are_told_during_the_run_and_exactly_for_the_window_after_it() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    let run = first(&locks).await;
    let fence = run.fence();
    // Longer than the ttl of 10 s: the run's lease is renewed.
    world.pass(secs(25)).await;
    for locks in [&locks, &other] {
        let duplicate = duplicate(locks).await;
        assert_eq!(duplicate.progress, Progress::Running);
        assert_eq!((duplicate.since, duplicate.fence), (secs(25), fence));
        assert!(duplicate.remaining <= secs(10), "{duplicate:?}");
    }
    run.succeed().await.unwrap();
    for locks in [&locks, &other] {
        let duplicate = duplicate(locks).await;
        assert_eq!(duplicate.progress, Progress::Done);
        assert_eq!((duplicate.since, duplicate.remaining), (secs(25), WINDOW));
    }
    world.pass(just_before(WINDOW)).await;
    assert_eq!(duplicate(&other).await.progress, Progress::Done);
    world.pass(nanos(1)).await;
    assert!(first(&other).await.fence() > fence);
}

on_every_store! {
    /// Nobody queues: a later one costs two commands and leaves no place behind.
    async fn a_duplicate_is_told_at_once_by_whom(world: World) {
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let run = submission(&locks).label("request 17").begin().await.unwrap();
        let Begun::First(run) = run else { panic!("{run:?}") };
        let told = duplicate(&other).await;
        assert_eq!((told.holder.as_str(), told.name.as_str()), ("request 17", NAME));
        assert_eq!((told.fence, told.progress), (run.fence(), Progress::Running));
        assert!(told.to_string().contains("request 17"), "{told}");
        let record = world.holder(NAME).await.unwrap();
        assert_eq!((record.label.as_str(), record.waiters.len()), ("request 17", 0));
        assert_eq!(world.store.sent(CommandKind::Heartbeat), 0);
        run.succeed().await.unwrap();
        let told = duplicate(&locks).await;
        assert_eq!((told.holder.as_str(), told.progress), ("request 17", Progress::Done));
    }

    async fn without_a_label_the_holder_is_the_process(world: World) {
        let locks = world.runtime(1);
        let run = first(&locks).await;
        let process = format!("/{}/", std::process::id());
        assert!(duplicate(&locks).await.holder.contains(&process));
        run.fail().await.unwrap();
    }

    /// An owner re-enters locks, not runs.
    async fn the_same_owner_is_a_duplicate_too(world: World) {
        let locks = world.runtime(1);
        let owner = locks.owner();
        owner
            .scope(async {
                let run = first(&locks).await;
                assert_eq!(duplicate(&locks).await.fence, run.fence());
                run.succeed().await.unwrap();
            })
            .await;
    }

    /// The lock of the same name is the door.
    async fn the_holder_of_the_lock_of_the_name_came_first(world: World) {
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().await.unwrap();
        assert_eq!(duplicate(&locks).await.fence, guard.fence());
        guard.release().await.unwrap();
        let run = first(&locks).await;
        assert!(lock(&locks).try_acquire().await.unwrap().is_none());
        run.succeed().await.unwrap();
        assert!(lock(&locks).try_acquire().await.unwrap().is_none());
        locks.force_release(NAME).await.unwrap();
        let _run = first(&locks).await;
    }
}

/// A window of zero: only one at a time.
#[tokio::test]
async fn without_a_window_the_door_opens_with_the_success() {
    let world = World::new();
    let locks = world.runtime(1);
    for _ in 0..3 {
        let begun = submission(&locks).window(secs(0)).begin().await.unwrap();
        let Begun::First(run) = begun else { panic!("{begun:?}") };
        let _ = duplicate(&locks).await;
        run.succeed().await.unwrap();
    }
}

#[tokio::test]
async fn bad_options_are_refused_before_anything_is_sent() {
    let world = World::new();
    let locks = world.runtime(1);
    let sent = || world.store.log().len();
    let window = submission(&locks).window(secs(86_400) + millis(1)).begin().await;
    assert!(
        matches!(&window, Err(AcquireError::Options { option: OptionsError::Window, .. })),
        "{window:?}"
    );
    let ttl = submission(&locks).ttl(millis(99)).begin().await;
    assert!(matches!(&ttl, Err(AcquireError::Options { option: OptionsError::Setting(_), .. })));
    assert!(locks.once("").is_err());
    let class = submission(&locks).class("no class").begin().await;
    assert!(matches!(&class, Err(AcquireError::Options { option: OptionsError::Class(_), .. })));
    assert_eq!(sent(), 0);
    let _ = locks.shutdown(secs(1)).await;
    let late = submission(&locks).begin().await;
    assert!(matches!(late, Err(AcquireError::ShutDown { .. })), "{late:?}");
}
