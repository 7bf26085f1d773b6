use leasehold::{Released, error::ReleaseError};
use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{World, config, definite, just_before, lock, millis, nanos, secs};

const NAME: &str = World::NAME;

/// The reply of the release is lost: it was kept, and is kept once.
#[tokio::test]
async fn a_lost_reply_is_asked_for_again_and_the_rest_is_the_same() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
    world.store.inject(Rule::new(Fault::BreakReply).on(CommandKind::Release));
    let release = tokio::spawn(guard.release());
    world.until("it is answered", async || release.is_finished()).await;
    let Released::Kept { remaining } = release.await.unwrap().unwrap() else { panic!("kept") };
    assert!(remaining <= secs(60) && remaining > secs(59), "{remaining:?}");
    assert_eq!(world.store.executed(CommandKind::Release), 2);
    world.pass(just_before(remaining)).await;
    assert!(lock(&locks).try_acquire().await.unwrap().is_none());
    world.pass(nanos(1)).await;
    assert!(lock(&locks).try_acquire().await.unwrap().is_some());
}

/// The request fails for a while: what is kept in the end is the rest at that time.
#[tokio::test]
async fn a_release_that_comes_late_keeps_what_is_left_by_then() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
    let refuse = Rule::new(Fault::Fail(definite())).on(CommandKind::Release);
    world.store.inject(refuse.times(4));
    let (began, release) = (world.now(), tokio::spawn(guard.release()));
    world.until("it is answered", async || release.is_finished()).await;
    let passed = world.now().saturating_since(began);
    let Released::Kept { remaining } = release.await.unwrap().unwrap() else { panic!("kept") };
    assert!(passed > millis(4) && remaining < secs(60), "{passed:?}, {remaining:?}");
    assert!(remaining + passed >= secs(60), "never less than asked: {passed:?}, {remaining:?}");
    assert!(remaining + passed <= secs(60) + millis(2), "{passed:?}, {remaining:?}");
}

/// While the time that was asked for is not over, "gone" is no release: the lock would be there.
#[tokio::test]
async fn gone_within_the_minimum_is_a_loss_also_after_a_lost_reply() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
    let gate = leasehold_testkit::Gate::new();
    world.store.inject(Rule::new(Fault::BreakReply).on(CommandKind::Release));
    world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Release).nth(2));
    let release = tokio::spawn(guard.release());
    world.settle().await;
    // It was kept, and an operator opens it before the runtime hears of that.
    let operator = world.another_line().runtime(2);
    operator.force_release(NAME).await.unwrap();
    gate.open();
    world.until("it is answered", async || release.is_finished()).await;
    let released = release.await.unwrap();
    assert!(matches!(released, Err(ReleaseError::Lost(_))), "{released:?}");
}

/// Once that time is over, "gone" after a lost reply is a release.
#[tokio::test]
async fn gone_after_the_minimum_is_a_release() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().min_hold(millis(50)).await.unwrap();
    let gate = leasehold_testkit::Gate::new();
    world.store.inject(Rule::new(Fault::BreakReply).on(CommandKind::Release));
    world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Release).nth(2));
    let release = tokio::spawn(guard.release());
    world.pass(millis(100)).await;
    gate.open();
    world.until("it is answered", async || release.is_finished()).await;
    assert_eq!(release.await.unwrap().unwrap(), Released::Ended);
    assert!(world.holder(NAME).await.is_none());
}

/// The reaper of dropped guards is as patient.
#[tokio::test]
async fn a_dropped_guard_whose_release_fails_at_first_keeps_the_rest() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
    let refuse = Rule::new(Fault::Fail(definite())).on(CommandKind::Release);
    world.store.inject(refuse.times(6));
    let began = world.now();
    drop(guard);
    let is_kept = async || world.holder(NAME).await.is_some_and(|record| record.kept);
    world.until("it is kept", is_kept).await;
    let (passed, record) = (world.now().saturating_since(began), world.holder(NAME).await.unwrap());
    assert!(passed > millis(10));
    assert!(record.remaining + passed + millis(2) >= secs(60), "{passed:?}, {record:?}");
    assert!(record.remaining < secs(60), "{record:?}");
}

/// The server refuses the release for good: nothing takes the lease back, and its ttl opens the
/// lock.
#[tokio::test]
async fn a_release_that_is_refused_leaves_the_lock_to_its_ttl() {
    for explicit in [true, false] {
        let world = World::new();
        let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
        let guard = lock(&locks).acquire().min_hold(secs(60)).await.unwrap();
        world.store.inject(Rule::new(Fault::Fail(config())).on(CommandKind::Release).always());
        if explicit {
            let released = guard.release().await;
            assert!(matches!(released, Err(ReleaseError::Unconfirmed { .. })), "{released:?}");
        } else {
            drop(guard);
        }
        world.pass(just_before(secs(10))).await;
        assert!(lock(&other).try_acquire().await.unwrap().is_none(), "explicit: {explicit}");
        world.pass(nanos(1)).await;
        assert!(lock(&other).try_acquire().await.unwrap().is_some());
    }
}
