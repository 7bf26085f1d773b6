//! P3, re-entry is the same lease: same owner, same token, one more hold. Re-entry after loss
//! answers `Lost`; it never grants.

use std::num::NonZeroU32;

use leasehold::{
    ForceReleased, Guard, LeaseState, LockRuntime, LossReason, ReentrantLock, Released,
    error::{AcquireError, LeaseLost, ReenterError, ReleaseError},
};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};
use tokio::join;

use crate::support::{
    World, at_most_polls, config, definite, is_taken_away, millis, on_every_store, secs,
};

const NAME: &str = World::NAME;

fn lock(locks: &LockRuntime) -> ReentrantLock {
    locks.lock(NAME).unwrap()
}

async fn acquired(locks: &LockRuntime) -> Guard {
    lock(locks).acquire().await.unwrap()
}

fn still_held(holds: u32) -> Released {
    Released::StillHeld(NonZeroU32::new(holds).unwrap())
}

on_every_store! {
    /// The same fence, the same id, and every hold is counted here and on the server.
    async fn reentry_keeps_fence_and_id_and_counts_holds(world: World) {
        let locks = world.runtime(1);
        let outer = acquired(&locks).await;
        let middle = outer.reenter().await.unwrap();
        let inner = middle.reenter().await.unwrap();
        for guard in [&middle, &inner] {
            assert_eq!((guard.fence(), guard.id()), (outer.fence(), outer.id()));
        }
        assert_eq!(world.holds(NAME).await, 3);
        assert_eq!(world.holder(NAME).await.unwrap().fence, outer.fence());
        // In any order: the outermost first.
        assert_eq!(outer.release().await.unwrap(), still_held(2));
        assert_eq!(world.holds(NAME).await, 2);
        assert!(inner.is_held());
        assert_eq!(inner.release().await.unwrap(), still_held(1));
        assert_eq!(middle.release().await.unwrap(), Released::Ended);
        assert!(world.holder(NAME).await.is_none());
    }

    async fn inner_guards_may_go_first(world: World) {
        let locks = world.runtime(1);
        let outer = acquired(&locks).await;
        let inner = outer.reenter().await.unwrap();
        assert_eq!(inner.release().await.unwrap(), still_held(1));
        assert_eq!(world.holds(NAME).await, 1);
        assert_eq!(outer.release().await.unwrap(), Released::Ended);
    }

    async fn an_owner_reenters_by_acquiring_again(world: World) {
        let locks = world.runtime(1);
        let (owner, other) = (locks.owner(), locks.owner());
        let first = lock(&locks).acquire().owner(&owner).await.unwrap();
        let second = lock(&locks).acquire().owner(&owner.clone()).await.unwrap();
        let third = lock(&locks).acquire().owner(&owner).try_acquire().await.unwrap().unwrap();
        assert_eq!((second.fence(), third.id()), (first.fence(), first.id()));
        assert_eq!(world.holds(NAME).await, 3);
        assert!(lock(&locks).acquire().owner(&other).try_acquire().await.unwrap().is_none());
        // Another lock of the same owner is another lease.
        let elsewhere = locks.lock("orders/43").unwrap();
        let elsewhere = elsewhere.acquire().owner(&owner).await.unwrap();
        assert_ne!(elsewhere.id(), first.id());
        for guard in [first, second] {
            guard.release().await.unwrap();
        }
        assert_eq!(third.release().await.unwrap(), Released::Ended);
        // The owner is free to acquire anew, and gets a new lease.
        let anew = lock(&locks).acquire().owner(&owner).await.unwrap();
        assert_ne!(anew.id(), elsewhere.id());
        assert_eq!(world.holds(NAME).await, 1);
    }

    async fn acquires_in_a_scope_share_its_owner(world: World) {
        let locks = world.runtime(1);
        let owner = locks.owner();
        owner.scope(async {
            let outer = acquired(&locks).await;
            let (left, right) = join!(acquired(&locks), acquired(&locks));
            assert_eq!((left.id(), right.id()), (outer.id(), outer.id()));
            assert_eq!(world.holds(NAME).await, 3);
            // A spawned task does not inherit the scope: it finds the lock taken.
            let lock = lock(&locks);
            let spawned = tokio::spawn(async move { lock.try_acquire().await });
            assert!(spawned.await.unwrap().unwrap().is_none());
            // An owner that is given wins over the scope's.
            let stranger = locks.owner();
            let refused = locks.lock(NAME).unwrap().acquire().owner(&stranger).try_acquire().await;
            assert!(refused.unwrap().is_none());
            drop((outer, left, right));
        }).await;
        world.until_free(NAME).await;
    }

    async fn concurrent_first_acquires_of_an_owner_end_in_one_lease(world: World) {
        let locks = world.runtime(1);
        let owner = locks.owner();
        owner.scope(async {
            let (left, right) = join!(acquired(&locks), acquired(&locks));
            assert_eq!(left.id(), right.id());
            assert_eq!(world.holds(NAME).await, 2);
            left.release().await.unwrap();
            assert_eq!(right.release().await.unwrap(), Released::Ended);
        }).await;
        assert!(world.holder(NAME).await.is_none());
    }

    async fn every_acquire_without_an_owner_has_a_fresh_one(world: World) {
        let locks = world.runtime(1);
        let guard = acquired(&locks).await;
        assert!(lock(&locks).try_acquire().await.unwrap().is_none());
        guard.release().await.unwrap();
        let again = lock(&locks).try_acquire().await.unwrap().unwrap();
        again.release().await.unwrap();
    }

    async fn an_owner_of_another_runtime_is_refused_before_anything_is_sent(world: World) {
        let (locks, others) = (world.runtime(1), world.runtime(2));
        let foreign = others.owner();
        let refused = lock(&locks).acquire().owner(&foreign).await.unwrap_err();
        assert!(matches!(&refused, AcquireError::ForeignOwner { lock } if lock.as_str() == NAME));
        let refused = lock(&locks).acquire().owner(&foreign).try_acquire().await.unwrap_err();
        assert!(matches!(refused, AcquireError::ForeignOwner { .. }));
        assert_eq!(world.store.sent(CommandKind::Acquire), 0);
        // In the scope of a foreign owner an acquire has a fresh one.
        let guard = foreign.scope(acquired(&locks)).await;
        assert!(foreign.scope(lock(&locks).try_acquire()).await.unwrap().is_none());
        guard.release().await.unwrap();
    }

    async fn dropped_guards_give_their_holds_back(world: World) {
        let locks = world.runtime(1);
        let outer = acquired(&locks).await;
        let inner = outer.reenter().await.unwrap();
        drop(inner);
        world.until("the hold is off", async || world.holds(NAME).await == 1).await;
        assert!(outer.is_held());
        let lease = outer.lease();
        drop(outer);
        assert_eq!(lease.state(), LeaseState::Released);
        world.until_free(NAME).await;
    }

    /// Two re-entries whose commands swap on the way leave the later count standing.
    async fn swapped_commands_leave_the_right_count(world: World) {
        let locks = world.runtime(1);
        let outer = acquired(&locks).await;
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Hold));
        let (middle, inner) = join!(biased; outer.reenter(), async {
            gate.wait_for_arrivals(1).await;
            let inner = outer.reenter().await.unwrap();
            assert_eq!(world.holds(NAME).await, 3);
            // Only now the command of the first re-entry, which says two.
            gate.open();
            inner
        });
        let middle = middle.unwrap();
        assert_eq!(world.store.executed(CommandKind::Hold), 2);
        assert_eq!(world.holds(NAME).await, 3);
        assert_eq!(middle.release().await.unwrap(), still_held(2));
        assert_eq!(world.holds(NAME).await, 2);
        drop((outer, inner));
        world.until_free(NAME).await;
    }

    /// After force-release and a new grant the old guard can neither re-enter nor release it.
    async fn an_ended_lease_cannot_touch_a_newer_one(world: World) {
        let (old, new) = (world.runtime(1), world.runtime(2));
        let stale = acquired(&old).await;
        new.force_release(NAME).await.unwrap();
        let newer = acquired(&new).await;
        assert!(newer.fence() > stale.fence());
        let error = stale.reenter().await.unwrap_err();
        assert!(matches!(error, ReenterError::Lost(LeaseLost { reason, .. }) if is_taken_away(reason)), "{error}");
        assert!(!stale.is_held());
        let lease = stale.lease();
        let error = stale.release().await.unwrap_err();
        assert!(matches!(error, ReleaseError::Lost(LeaseLost { reason, .. }) if is_taken_away(reason)), "{error}");
        assert!(matches!(lease.state(), LeaseState::Lost(reason) if is_taken_away(reason)));
        let holder = world.holder(NAME).await.unwrap();
        assert_eq!((holder.id, holder.fence, holder.holds), (newer.id(), newer.fence(), 1));
        newer.release().await.unwrap();
    }

    /// An operator who looked at one lease does not end a later one.
    async fn a_lease_that_was_looked_at_is_ended_alone(world: World) {
        let (holder, operator) = (world.runtime(1), world.runtime(2));
        let first = acquired(&holder).await;
        let seen = world.holder(NAME).await.unwrap();
        first.release().await.unwrap();
        let second = acquired(&holder).await;
        let ended = operator.force_release_lease(NAME, seen).await.unwrap();
        assert_eq!(ended, ForceReleased::NotHeld);
        let seen = world.holder(NAME).await.unwrap();
        assert_eq!(seen.id, second.id());
        let ended = operator.force_release_lease(NAME, seen).await.unwrap();
        assert!(matches!(ended, ForceReleased::Ended { fence, .. } if fence > Some(second.fence())));
    }

    /// The release is the first to hear of it.
    async fn a_release_of_a_lease_that_was_taken_away_says_so(world: World) {
        let (old, new) = (world.runtime(1), world.runtime(2));
        let stale = acquired(&old).await;
        new.force_release(NAME).await.unwrap();
        let newer = acquired(&new).await;
        let error = stale.release().await.unwrap_err();
        assert!(matches!(error, ReleaseError::Lost(LeaseLost { reason, .. }) if is_taken_away(reason)), "{error}");
        assert_eq!(world.holder(NAME).await.unwrap().id, newer.id());
    }

    async fn reentry_after_loss_never_grants_also_by_acquiring(world: World) {
        let (locks, admin) = (world.runtime(1), world.runtime(2));
        let owner = locks.owner();
        let outer = lock(&locks).acquire().owner(&owner).await.unwrap();
        admin.force_release(NAME).await.unwrap();
        let error = outer.reenter().await.unwrap_err();
        assert!(matches!(&error, ReenterError::Lost(LeaseLost { lock, fence, .. })
            if lock.as_str() == NAME && *fence == outer.fence()), "{error}");
        // The lock is free, but the owner's old guard still lives.
        for patience in [secs(0), secs(1)] {
            let error = lock(&locks).acquire().owner(&owner).wait(patience).await.unwrap_err();
            assert!(matches!(error, AcquireError::Lost(_)), "{error}");
        }
        let error = lock(&locks).acquire().owner(&owner).try_acquire().await.unwrap_err();
        assert!(matches!(error, AcquireError::Lost(_)), "{error}");
        assert!(world.holder(NAME).await.is_none());
        let fence = outer.fence();
        drop(outer);
        let anew = lock(&locks).acquire().owner(&owner).await.unwrap();
        assert!(anew.fence() > fence);
        anew.release().await.unwrap();
    }

    async fn a_cancelled_reentry_takes_its_hold_off(world: World) {
        let locks = world.runtime(1);
        let outer = acquired(&locks).await;
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Hold));
        assert!(at_most_polls(0, outer.reenter()).await.is_none());
        assert_eq!(world.store.sent(CommandKind::Hold), 0, "a future that is not polled does nothing");
        tokio::select! {
            biased;
            _ = outer.reenter() => panic!("its reply waits at a gate"),
            () = gate.wait_for_arrivals(1) => {}
        }
        world.until("the hold is off", async || world.holds(NAME).await == 1).await;
        assert_eq!(outer.release().await.unwrap(), Released::Ended);
    }

    async fn a_reentry_that_is_refused_takes_its_hold_off(world: World) {
        let locks = world.runtime(1);
        let outer = acquired(&locks).await;
        world.store.inject(Rule::new(Fault::Fail(config())).on(CommandKind::Hold));
        let error = outer.reenter().await.unwrap_err();
        assert!(matches!(&error, ReenterError::Store(error)
            if error.lock().is_some_and(|lock| lock.as_str() == NAME)), "{error}");
        assert_eq!(outer.release().await.unwrap(), Released::Ended);
        assert!(world.holder(NAME).await.is_none());
    }
}

/// While the store cannot be told, the lease stands until its deadline, and so does the re-entry.
#[tokio::test]
async fn a_reentry_stands_while_the_store_is_out_of_reach() {
    let world = World::new();
    let locks = world.runtime(1);
    let outer = acquired(&locks).await;
    world.store.inject(Rule::new(Fault::Fail(definite())).on(CommandKind::Hold));
    let inner = outer.reenter().await.unwrap();
    assert_eq!((world.holds(NAME).await, inner.fence()), (1, outer.fence()));
    // The runtime tells it again, after a pause.
    world.pass(millis(2)).await;
    assert_eq!(world.holds(NAME).await, 2);
    assert_eq!(outer.release().await.unwrap(), still_held(1));
    assert_eq!(world.holds(NAME).await, 1);
    assert_eq!(inner.release().await.unwrap(), Released::Ended);
}

#[tokio::test]
async fn an_expired_guard_can_neither_renew_nor_reenter_nor_release_a_newer_lease() {
    let world = World::new();
    let (old, new) = (world.runtime(1), world.another_line().runtime(2));
    let owner = old.owner();
    let stale = lock(&old).acquire().owner(&owner).await.unwrap();
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    world.pass(secs(10)).await;
    let newer = acquired(&new).await;
    world.store.heal();
    world.store.clear_log();
    assert!(!stale.is_held());
    assert!(matches!(
        stale.reenter().await.unwrap_err(),
        ReenterError::Lost(LeaseLost { reason: LossReason::Expired, .. })
    ));
    assert!(matches!(
        lock(&old).acquire().owner(&owner).await.unwrap_err(),
        AcquireError::Lost(LeaseLost { reason: LossReason::Expired, .. })
    ));
    world.pass(secs(5)).await;
    assert_eq!(world.store.sent(CommandKind::Renew), 0, "nothing of the old lease is renewed");
    assert_eq!(world.store.sent(CommandKind::Hold), 0, "a lost lease tells no holds");
    assert!(matches!(
        stale.release().await.unwrap_err(),
        ReleaseError::Lost(LeaseLost { reason: LossReason::Expired, .. })
    ));
    world.pass(secs(60)).await;
    assert!(newer.is_held());
    let holder = world.holder(NAME).await.unwrap();
    assert_eq!((holder.id, holder.fence, holder.holds), (newer.id(), newer.fence(), 1));
}

/// A hold extends; where the server still has a lease that its holder has lost, nothing may.
#[tokio::test]
async fn an_inner_guard_does_not_prolong_a_lost_lease() {
    let world = World::new();
    let locks = world.runtime(1);
    let outer = lock(&locks).acquire().renew(false).await.unwrap();
    let inner = outer.reenter().await.unwrap();
    let another = outer.reenter().await.unwrap();
    // Belief is over 100 ms before the server's lease.
    world.pass(millis(9_950)).await;
    assert!(!outer.is_held() && world.holder(NAME).await.is_some());
    drop(inner);
    assert!(matches!(another.release().await, Err(ReleaseError::Lost(_))));
    world.pass(millis(49)).await;
    assert!(world.holder(NAME).await.is_some());
    world.pass(millis(1)).await;
    assert!(world.holder(NAME).await.is_none());
}

/// A hold that could not be told in time is not told after the loss either.
#[tokio::test]
async fn an_untold_hold_is_forgotten_with_the_lease() {
    let world = World::new();
    let locks = world.runtime(1);
    let outer = lock(&locks).acquire().renew(false).await.unwrap();
    let inner = outer.reenter().await.unwrap();
    world.pass(secs(9)).await;
    world.store.inject(Rule::new(Fault::Fail(definite())).on(CommandKind::Hold).always());
    drop(inner);
    world.pass(millis(950)).await;
    assert!(!outer.is_held());
    world.store.heal();
    world.pass(millis(50)).await;
    assert!(world.holder(NAME).await.is_none());
}

/// The last guard goes while another task of the owner comes: it gets a lease of its own.
#[tokio::test]
async fn an_acquire_beside_the_last_release_gets_a_fresh_lease() {
    let world = World::new();
    let locks = world.runtime(1);
    let owner = locks.owner();
    let first = lock(&locks).acquire().owner(&owner).await.unwrap();
    let (fence, gate) = (first.fence(), Gate::new());
    world.store.inject(Rule::new(Fault::Delay(gate.clone())).on(CommandKind::Release));
    let again = lock(&locks).acquire().owner(&owner);
    let (released, again, ()) = join!(biased; first.release(), again, async {
        gate.wait_for_arrivals(1).await;
        world.pass(millis(20)).await;
        gate.open();
        world.pass(millis(500)).await;
    });
    assert_eq!(released.unwrap(), Released::Ended);
    assert!(again.unwrap().fence() > fence);
}

/// A process that was away for longer than its lease hears too late that its entry was not
/// answered.
#[tokio::test]
async fn an_entry_that_ends_after_its_lease_was_lost_is_refused() {
    let world = World::new();
    let locks = world.runtime(1);
    for minimum in [0, 60] {
        let owner = locks.owner();
        let outer = lock(&locks).acquire().owner(&owner).await.unwrap();
        world.store.inject(Rule::new(Fault::LoseReply).on(CommandKind::Hold));
        let entry = lock(&locks).acquire().owner(&owner).min_hold(secs(minimum));
        let entering = tokio::spawn(entry);
        world.settle().await;
        assert!(!entering.is_finished());
        // Nothing runs meanwhile.
        world.clock().advance(secs(31));
        world.settle().await;
        let refused = entering.await.unwrap().map(|guard| guard.id());
        assert!(matches!(refused, Err(AcquireError::Lost(_))), "{refused:?}");
        assert!(!outer.is_held());
    }
}
