//! Withdrawing: an acquisition is taken back, whatever came of it.

use leasehold_core::store::AcquireAnswer;

use crate::contract::{Scene, alice, bob, secs};

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
    // Busy before withdrawn: the mark decides only who would get a free lock.
    scene.busy(bob(1)).await;
}

/// The mark of a withdrawal lives for 30 s; ids are never used again, so nobody misses it.
pub(crate) async fn the_mark_of_a_withdrawal_expires_by_itself(scene: &Scene) {
    scene.withdraw(alice(1)).await;
    scene.pass_until_just_before(secs(30)).await;
    assert_eq!(scene.acquire(alice(1)).await, AcquireAnswer::Withdrawn);
    scene.pass_over().await;
    scene.granted(alice(1)).await;
}
