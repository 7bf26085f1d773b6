use std::num::NonZeroU32;

use leasehold::{
    LeaseState, Released,
    error::{LeaseLost, ReleaseError},
};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{World, at_most_polls, definite, is_taken_away, millis, on_every_store, secs};

const NAME: &str = World::NAME;

const KINDS: [CommandKind; 5] = [
    CommandKind::Acquire,
    CommandKind::Hold,
    CommandKind::Release,
    CommandKind::Renew,
    CommandKind::Withdraw,
];

/// A life of a lease in which every kind of command occurs: taken back once, then acquired,
/// re-entered, renewed and released. Every answer of the API is the usual one.
async fn life(world: &World, deliver_at_once: bool) {
    let deliver = async || {
        if deliver_at_once {
            world.store.deliver_late().await;
        }
    };
    let locks = world.runtime(1);
    let lock = locks.lock(NAME).unwrap();
    let one = NonZeroU32::MIN;
    // Cancelled in its second poll at the latest, so that it is withdrawn.
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate)).on(CommandKind::Acquire));
    let cancelled = async { lock.acquire().await };
    assert!(at_most_polls(1, cancelled).await.is_none());
    world.pass(secs(3)).await;
    deliver().await;

    let guard = drive(world, async { lock.acquire().await }).await.unwrap();
    deliver().await;
    let inner = drive(world, async { guard.reenter().await }).await.unwrap();
    assert_eq!((inner.fence(), inner.id()), (guard.fence(), guard.id()));
    world.pass(millis(20)).await;
    deliver().await;
    let held = world.holder(NAME).await.unwrap();
    assert_eq!((held.id, held.fence, held.holds), (guard.id(), guard.fence(), 2));
    world.pass(secs(25)).await;
    deliver().await;
    assert!(guard.is_held());
    assert_eq!(drive(world, inner.release()).await.unwrap(), Released::StillHeld(one));
    world.pass(secs(3)).await;
    deliver().await;
    let held = world.holder(NAME).await.unwrap();
    assert_eq!((held.id, held.fence, held.holds), (guard.id(), guard.fence(), 1));
    let lease = guard.lease();
    match drive(world, guard.release()).await {
        Ok(released) => assert_eq!(released, Released::Ended),
        // Nothing was heard in time: the runtime goes on.
        Err(error) => assert!(matches!(error, ReleaseError::Unconfirmed { .. }), "{error}"),
    }
    assert_eq!(lease.state(), LeaseState::Released);
    world.pass(secs(3)).await;
    assert!(world.holder(NAME).await.is_none());
    deliver().await;
}

/// Lets time pass until a future is done.
async fn drive<T>(world: &World, future: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        output = future => output,
        () = world.pass(secs(30)) => panic!("30 virtual seconds were not enough"),
    }
}

/// The first command of a kind that the life itself sends; the cancelled acquire comes before.
fn strike(world: &World, fault: Fault, kind: CommandKind) {
    let nth = if kind == CommandKind::Acquire { 2 } else { 1 };
    world.store.inject(Rule::new(fault).on(kind).nth(nth));
}

#[tokio::test]
async fn a_command_whose_reply_or_request_is_lost_is_told_again() {
    for kind in KINDS {
        for fault in [Fault::LoseReply, Fault::LoseRequest, Fault::Fail(definite())] {
            let world = World::new();
            strike(&world, fault.clone(), kind);
            life(&world, false).await;
            assert!(world.holder(NAME).await.is_none(), "{kind:?}, {fault:?}");
        }
    }
}

#[tokio::test]
async fn a_command_that_runs_twice_or_late_ends_in_the_same_state() {
    for kind in KINDS {
        for fault in [Fault::Duplicate, Fault::LateRequest] {
            for at_once in [true, false] {
                let world = World::new();
                strike(&world, fault.clone(), kind);
                life(&world, at_once).await;
                let late = world.store.deliver_late().await;
                assert_eq!(late.len(), usize::from(!at_once), "{kind:?}, {fault:?}");
                let ghost =
                    !at_once && kind == CommandKind::Acquire && matches!(fault, Fault::Duplicate);
                if !ghost {
                    assert!(world.holder(NAME).await.is_none(), "{kind:?}, {fault:?}");
                }
                // A copy that nobody knows of, of an acquire that was answered: at worst, one
                // lease that is not renewed and ends by itself.
                let renewals = world.store.sent(CommandKind::Renew);
                world.pass(secs(10)).await;
                assert!(world.holder(NAME).await.is_none(), "{kind:?}, {fault:?}");
                assert_eq!(world.store.sent(CommandKind::Renew), renewals);
            }
        }
    }
}

/// All copies of all commands at once.
#[tokio::test]
async fn every_command_twice() {
    for at_once in [true, false] {
        let world = World::new();
        for kind in KINDS {
            world.store.inject(Rule::new(Fault::Duplicate).on(kind).nth(2).always());
        }
        life(&world, at_once).await;
        world.store.deliver_late().await;
        world.pass(secs(10)).await;
        assert!(world.holder(NAME).await.is_none());
    }
}

on_every_store! {
    /// The server ended it, the answer was lost, and the repeat finds nothing.
    async fn gone_after_an_unanswered_release_is_a_release(world: World) {
        let locks = world.runtime(1);
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        world.store.inject(Rule::new(Fault::BreakReply).on(CommandKind::Release));
        let release = tokio::spawn(guard.release());
        world.until("it is done", async || release.is_finished()).await;
        assert_eq!(release.await.unwrap().unwrap(), Released::Ended);
        assert_eq!(world.store.executed(CommandKind::Release), 2);
    }

    /// The control: without a doubt about an earlier copy, gone is a loss.
    async fn gone_at_once_is_a_loss(world: World) {
        let (locks, admin) = (world.runtime(1), world.another_line().runtime(2));
        let guard = locks.lock(NAME).unwrap().acquire().await.unwrap();
        admin.force_release(NAME).await.unwrap();
        // Definite: the first copy was not executed.
        world.store.inject(Rule::new(Fault::Fail(definite())).on(CommandKind::Release));
        let release = tokio::spawn(guard.release());
        world.until("it is done", async || release.is_finished()).await;
        let error = release.await.unwrap().unwrap_err();
        assert!(matches!(error, ReleaseError::Lost(LeaseLost { reason, .. }) if is_taken_away(reason)), "{error}");
    }

    /// A copy of the acquire is on its way when the lease is released: it stays without effect.
    async fn a_late_copy_of_an_unanswered_acquire_grants_nothing(world: World) {
        let locks = world.start(world.builder(1).command_timeout(millis(100)));
        for released in [true, false] {
            world.store.inject(Rule::new(Fault::LateRequest).on(CommandKind::Acquire));
            let lock = locks.lock(NAME).unwrap();
            let acquire = tokio::spawn(async move { lock.acquire().await });
            world.until("it is done", async || acquire.is_finished()).await;
            let guard = acquire.await.unwrap().unwrap();
            if released {
                guard.release().await.unwrap();
            } else {
                // Cancelled in the middle, it leaves this to the reaper too.
                world.store.inject(Rule::new(Fault::Hang { executed: true }).on(CommandKind::Release));
                assert!(at_most_polls(1, guard.release()).await.is_none());
            }
            let executed = usize::from(!released) + 1;
            world.until("it is withdrawn", async || {
                world.store.executed(CommandKind::Withdraw) >= executed
            }).await;
            assert_eq!(world.store.deliver_late().await.len(), 1);
            assert!(world.holder(NAME).await.is_none());
        }
    }
}
