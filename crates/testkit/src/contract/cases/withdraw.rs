//! Withdrawing: an acquisition is taken back, granted or not.

use leasehold_core::store::AcquireAnswer;

use crate::contract::{Scene, alice, bob, carol, secs};

/// An acquire that arrives after its withdrawal is refused, and only that one.
pub(crate) async fn a_withdrawn_acquisition_is_never_granted(scene: &Scene) {
    assert!(!scene.withdraw(alice(1)).await);
    assert!(!scene.withdraw(alice(1)).await);
    assert_eq!(scene.acquire(alice(1)).await, AcquireAnswer::Withdrawn);
    assert_eq!(scene.acquire(alice(1)).await, AcquireAnswer::Withdrawn);
    scene.free().await;
    scene.granted(alice(2)).await;
}

/// A withdrawal ends the grant that crossed it, once, and for good.
pub(crate) async fn a_withdrawal_ends_the_grant_that_crossed_it(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    assert!(scene.withdraw(alice(1)).await);
    assert_eq!(scene.free().await, Some(fence));
    assert!(!scene.withdraw(alice(1)).await);
    assert_eq!(scene.acquire(alice(1)).await, AcquireAnswer::Withdrawn);
    assert!(scene.granted(bob(1)).await.first > fence);
}

/// A withdrawal of one who waits leaves the holder alone.
pub(crate) async fn a_withdrawal_touches_nobody_else(scene: &Scene) {
    let granted = scene.granted(alice(1)).await;
    for stranger in [bob(1), alice(2)] {
        assert!(!scene.withdraw(stranger).await);
    }
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.fence, holder.holds), (alice(1), granted.first, 1));
    scene.assert_left(holder.remaining, secs(60));
    // Whether the lock is taken or free, who is withdrawn neither gets it nor waits for it.
    assert_eq!(scene.acquire(bob(1)).await, AcquireAnswer::Withdrawn);
    scene.busy(bob(2)).await;
}

/// A withdrawn acquisition is not queued either, on a taken or a free lock.
pub(crate) async fn a_withdrawn_acquisition_is_never_queued(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.withdraw(bob(1)).await;
    assert_eq!(scene.wait(bob(1)).await, AcquireAnswer::Withdrawn);
    assert!(scene.waiting().await.is_empty());
    scene.release(alice(1), fence).await;
    assert_eq!(scene.wait(bob(1)).await, AcquireAnswer::Withdrawn);
    scene.free().await;
}

/// A withdrawal gives up the place of the acquisition that it names, and of no other.
pub(crate) async fn a_withdrawal_gives_up_the_place(scene: &Scene) {
    scene.granted(alice(1)).await;
    scene.queued(bob(2)).await;
    scene.queued(carol(1)).await;
    for stranger in [bob(1), bob(3), alice(2)] {
        assert!(!scene.withdraw(stranger).await);
    }
    assert_eq!(scene.waiting().await, [bob(2), carol(1)]);
    assert!(!scene.withdraw(bob(2)).await);
    assert_eq!(scene.waiting().await, [carol(1)]);
    assert_eq!(scene.queued(carol(1)).await.ahead, 0);
    assert_eq!(scene.wait(bob(2)).await, AcquireAnswer::Withdrawn);
}

/// A withdrawal that ends a grant grants the next waiter.
pub(crate) async fn a_withdrawn_grant_goes_to_the_next(scene: &Scene) {
    let pushes = scene.pushes(carol(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.queued(carol(1)).await;
    scene.release(alice(1), fence).await;
    // Bob's grant crosses his withdrawal.
    assert!(scene.withdraw(bob(1)).await);
    let (id, granted, _) = pushes.grant().await;
    assert_eq!(id, carol(1));
    assert_eq!((scene.holder().await.id, scene.holder().await.fence), (id, granted.first));
    assert!(!scene.withdraw(bob(1)).await);
    assert_eq!(scene.holder().await.id, carol(1));
}

/// The mark of a withdrawal lives for 30 s; ids are never used again, so nobody misses it.
pub(crate) async fn the_mark_of_a_withdrawal_expires_by_itself(scene: &Scene) {
    scene.withdraw(alice(1)).await;
    scene.pass_until_just_before(secs(30)).await;
    assert_eq!(scene.acquire(alice(1)).await, AcquireAnswer::Withdrawn);
    scene.pass_over().await;
    scene.granted(alice(1)).await;
}
