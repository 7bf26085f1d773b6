//! P6, unknown is not lost: an error or a timeout is retried until the local deadline; only "gone"
//! or the deadline is loss.

use leasehold::{
    LeaseState, LossReason,
    error::{StoreError, StoreErrorKind},
};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{
    Waiting, World, config, definite, indeterminate, just_before, lock, millis, nanos,
    on_every_store, secs,
};

const NAME: &str = World::NAME;

/// Everything that can become of a renewal but an answer.
fn failures() -> Vec<Fault> {
    let corrupt = StoreError::new(StoreErrorKind::Corrupt, "an answer without sense", "look there");
    vec![
        Fault::Fail(definite()),
        Fault::Fail(indeterminate()),
        Fault::Fail(config()),
        Fault::Fail(corrupt),
        Fault::LoseRequest,
        Fault::LoseReply,
        Fault::LateRequest,
        Fault::Delay(Gate::new()),
        Fault::DelayReply(Gate::new()),
    ]
}

#[tokio::test]
async fn a_failed_renewal_is_tried_again_until_the_deadline() {
    for fault in failures() {
        let world = World::new();
        let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
        world.store.inject(Rule::new(fault.clone()).on(CommandKind::Renew).always());
        world.pass(just_before(millis(9_900))).await;
        assert!(guard.is_held(), "{fault:?}");
        // Every third of the ttl at first, soon again, and a little denser just before the end:
        // each try has a sixth of the ttl.
        let tries = world.store.sent(CommandKind::Renew);
        assert!((3..=30).contains(&tries), "{fault:?}: {tries} tries");
        world.pass(nanos(1)).await;
        assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::Expired), "{fault:?}");
    }
}

#[tokio::test]
async fn a_lease_recovers_with_its_store() {
    for fault in failures() {
        let world = World::new();
        let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
        world.store.inject(Rule::new(fault.clone()).on(CommandKind::Renew).always());
        world.pass(millis(8_000)).await;
        world.store.heal();
        // A try that is still on its way has a sixth of the ttl, the next comes within a twelfth.
        world.pass(millis(1_850)).await;
        world.pass(secs(60)).await;
        assert!(guard.is_held(), "{fault:?}");
        assert_eq!(world.holder(NAME).await.unwrap().fence, guard.fence());
        world.store.deliver_late().await;
        assert!(guard.is_held(), "{fault:?}");
    }
}

/// Two failures in a row, in every place, cost nothing.
#[tokio::test]
async fn a_lease_survives_failures_that_come_and_go() {
    for fault in failures() {
        let world = World::new();
        let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
        for n in 0..10 {
            let rule = Rule::new(fault.clone()).on(CommandKind::Renew).nth(1 + 4 * n).times(2);
            world.store.inject(rule);
        }
        world.pass(secs(100)).await;
        assert!(guard.is_held(), "{fault:?}");
        assert!(world.store.sent(CommandKind::Renew) >= 30);
    }
}

/// A grant out of the queue has no more than the claim window at first.
#[tokio::test]
async fn a_lease_out_of_the_queue_survives_the_loss_of_its_first_renewal() {
    for fault in failures() {
        let world = World::new();
        let [one, two] = [1, 2].map(|seed| world.runtime(seed));
        let guard = lock(&one).acquire().await.unwrap();
        let waits = Waiting::on(lock(&two).acquire().ttl(secs(30)));
        world.settle().await;
        guard.release().await.unwrap();
        let guard = waits.taken(&world).await;
        world.store.inject(Rule::new(fault.clone()).on(CommandKind::Renew));
        for _ in 0..600 {
            world.pass(millis(100)).await;
            assert!(guard.is_held(), "{fault:?}");
        }
        assert!(world.store.sent(CommandKind::Renew) > 1);
    }
}

/// The control: "gone" is no error, and is a loss at once.
#[tokio::test]
async fn gone_is_a_loss_at_once() {
    let world = World::new();
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    world.memory().clear();
    world.pass(millis(3_334)).await;
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::DataLost));
}

#[tokio::test]
async fn a_fixed_lease_is_not_renewed_and_ends_with_its_ttl() {
    let world = World::new();
    let locks = world.runtime(1);
    let guard = locks.lock(NAME).unwrap().acquire().renew(false).await.unwrap();
    world.pass(just_before(millis(9_900))).await;
    assert!(guard.is_held());
    world.pass(nanos(1)).await;
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::Expired));
    world.pass(millis(100)).await;
    assert!(world.holder(NAME).await.is_none());
    assert_eq!(world.store.sent(CommandKind::Renew), 0);
}

/// A release that is so slow that the lease's time is over before the server hears it: the lease
/// was held to the end, so it was not lost. A pushed grant has a claim window, and not a ttl.
#[tokio::test]
async fn a_release_that_comes_after_the_time_of_its_lease_is_no_loss() {
    let world = World::new();
    let [first, second] =
        [1, 2].map(|seed| world.start(world.builder(seed).claim_window(millis(600))));
    let holder = lock(&first).acquire().await.unwrap();
    let waiting = Waiting::queued(&world, &second).await;
    holder.release().await.unwrap();
    let guard = waiting.taken(&world).await;
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Renew).always());
    let slow = Gate::new();
    world.store.inject(Rule::new(Fault::Delay(slow.clone())).on(CommandKind::Release));
    assert!(guard.is_held());
    let release = tokio::spawn(guard.release());
    world.pass(millis(700)).await;
    slow.let_pass(1);
    world.pass(secs(3)).await;
    let released = release.await.unwrap();
    let is_unknown = matches!(released, Err(leasehold::error::ReleaseError::Unconfirmed { .. }));
    assert!(is_unknown || released.is_ok(), "{released:?}");
    assert!(world.holder(NAME).await.is_none());
}

/// Leases travel in one command; what is wrong with one of them stays with it.
#[tokio::test]
async fn a_sick_name_in_a_batch_does_not_hurt_the_others() {
    let world = World::new();
    let locks = world.runtime(1);
    let mut guards = Vec::new();
    for n in 0..300 {
        guards.push(locks.lock(format!("n{n}")).unwrap().acquire().await.unwrap());
    }
    let sick = world.another_line().runtime(2);
    for n in [0, 7, 128, 299] {
        sick.force_release(format!("n{n}")).await.unwrap();
    }
    world.pass(secs(60)).await;
    for (n, guard) in guards.iter().enumerate() {
        let expected = if [0, 7, 128, 299].contains(&n) {
            LeaseState::Lost(LossReason::ForceReleased)
        } else {
            assert!(guard.is_held(), "n{n}");
            continue;
        };
        assert_eq!(guard.lease().state(), expected, "n{n}");
    }
    // They did travel together: 300 leases for 18 thirds of a ttl are 5,400 renewals.
    let commands = world.store.sent(CommandKind::Renew);
    assert!(commands < 1_500, "{commands} commands");
}

#[tokio::test]
async fn leases_of_different_ttls_renew_side_by_side() {
    let world = World::new();
    let locks = world.runtime(1);
    let mut guards = Vec::new();
    for (n, ttl) in [millis(100), millis(250), secs(1), secs(30), secs(3_600)].iter().enumerate() {
        let lock = locks.lock(format!("n{n}")).unwrap();
        guards.push(lock.acquire().ttl(*ttl).await.unwrap());
    }
    world.pass(secs(40)).await;
    assert!(guards.iter().all(|guard| guard.is_held()));
}

on_every_store! {
    /// A release is retried too: what is unknown is asked again, also after the call has ended.
    async fn a_release_is_retried_until_it_is_known(world: World) {
        let [patient, short] = [(1, secs(4)), (2, millis(50))]
            .map(|(seed, timeout)| world.start(world.builder(seed).command_timeout(timeout)));
        for (locks, fault, silent) in [
            (&patient, Fault::Fail(definite()), false),
            (&patient, Fault::BreakReply, false),
            (&short, Fault::LoseRequest, true),
            (&short, Fault::LoseReply, true),
        ] {
            let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
            world.store.inject(Rule::new(fault).on(CommandKind::Release).times(2));
            let release = tokio::spawn(guard.release());
            world.until("it is done", async || release.is_finished()).await;
            let released = release.await.unwrap();
            if silent {
                let unknown = matches!(released, Err(leasehold::error::ReleaseError::Unconfirmed { .. }));
                assert!(unknown, "{released:?}");
                let told = async || locks.footprint().pending == 0;
                world.until("the runtime has told it", told).await;
            } else {
                assert_eq!(released.unwrap(), leasehold::Released::Ended);
            }
            assert!(world.holder(NAME).await.is_none());
            world.store.heal();
        }
    }

    /// An acquire that meets failures goes on until its wait is over, and says what it met. After
    /// the first command, the runtime asks by heartbeats.
    async fn an_acquire_is_retried_until_its_wait_is_over(world: World) {
        let locks = world.start(world.builder(1).command_timeout(millis(50)));
        for fault in [Fault::Fail(definite()), Fault::LoseRequest, Fault::LoseReply] {
            world.store.inject(Rule::new(fault.clone()).on(CommandKind::Acquire));
            world.store.inject(Rule::new(fault).on(CommandKind::Heartbeat).times(3));
            world.store.clear_log();
            let lock = locks.lock(NAME).unwrap();
            let acquire = tokio::spawn(async move { lock.acquire().await });
            world.until("it is done", async || acquire.is_finished()).await;
            acquire.await.unwrap().unwrap().release().await.unwrap();
            assert_eq!(world.store.sent(CommandKind::Acquire), 1);
            assert!(world.store.sent(CommandKind::Heartbeat) >= 4, "three of them fail");
            world.store.heal();
        }
        // What was answered before does not count.
        let since = world.now();
        let pause = millis(50);
        world.until("a pause", async || world.now().saturating_since(since) > pause).await;
        world.store.inject(Rule::new(Fault::Fail(definite())).always());
        let lock = locks.lock(NAME).unwrap();
        let acquire = tokio::spawn(async move { lock.acquire().wait(millis(200)).await });
        world.until("it is done", async || acquire.is_finished()).await;
        let error = acquire.await.unwrap().unwrap_err();
        let leasehold::error::AcquireError::Unavailable(outage) = &error else { panic!("{error}") };
        assert!(outage.waited >= millis(200) && outage.failed > 1, "{outage:?}");
        assert_eq!(outage.error.kind(), StoreErrorKind::Definite);
        // What waiting does not mend ends it at once, whichever command meets it.
        for kinds in [&[CommandKind::Acquire][..], &[CommandKind::Acquire, CommandKind::Heartbeat]] {
            world.store.heal();
            let (last, before) = kinds.split_last().unwrap();
            world.store.inject(Rule::new(Fault::Fail(config())).on(*last));
            for kind in before {
                world.store.inject(Rule::new(Fault::Fail(definite())).on(*kind));
            }
            let lock = locks.lock(NAME).unwrap();
            let acquire = tokio::spawn(async move { lock.acquire().await });
            world.until("it is done", async || acquire.is_finished()).await;
            let error = acquire.await.unwrap().unwrap_err();
            let leasehold::error::AcquireError::Store(error) = &error else { panic!("{error}") };
            assert_eq!(error.lock().unwrap().as_str(), NAME);
        }
    }
}
