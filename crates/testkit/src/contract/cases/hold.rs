//! Holding: nested uses of a lease, told as absolute and numbered counts.

use leasehold_core::store::{AcquireAnswer, HoldAnswer, ReleaseAnswer};

use crate::contract::{Scene, alice, bob, secs, ttl};

/// A hold sets the count that it names, up or down, and a repeat sets nothing else.
pub(crate) async fn a_hold_sets_the_absolute_count(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    assert_eq!(scene.holder().await.holds, 1);
    for (holds, number) in [(2, 1), (2, 1), (7, 2), (1, 3), (1, 3)] {
        let answer = scene.hold(alice(1), fence, (holds, number)).await;
        assert!(matches!(answer, HoldAnswer::Held { .. }), "{answer:?}");
        assert_eq!(scene.holder().await.holds, holds);
    }
    assert_eq!(scene.holder().await.fence, fence);
}

/// Of two re-entries whose commands swap, the later one stands; neither is refused.
pub(crate) async fn swapped_holds_leave_the_later_standing(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    // The numbers are compared as numbers: 9 comes before 10.
    for (early, late) in [((2, 1), (3, 2)), ((8, 9), (9, 10)), ((4, 11), (3, 100))] {
        for either in [late, early, late] {
            let answer = scene.hold(alice(1), fence, either).await;
            assert!(matches!(answer, HoldAnswer::Held { .. }), "{answer:?}");
            assert_eq!(scene.holder().await.holds, late.0);
        }
    }
}

/// A hold extends the lease to its ttl, unless there is more left.
pub(crate) async fn a_hold_extends_to_the_greater(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.pass(secs(30)).await;
    let HoldAnswer::Held { remaining } = scene.hold(alice(1), fence, (2, 1)).await else {
        panic!("the lease stands");
    };
    scene.assert_left(remaining, secs(60));
    let answer = scene.hold_for(alice(1), fence, (3, 2), ttl(1)).await;
    let HoldAnswer::Held { remaining } = answer else { panic!("the lease stands") };
    scene.assert_left(remaining, secs(60));
    scene.assert_left(scene.holder().await.remaining, secs(60));
}

/// A hold whose number is not above the last one changes nothing, however late it comes: neither
/// the count, nor the lease, nor how long the fence counter is remembered.
pub(crate) async fn a_late_hold_changes_nothing(scene: &Scene) {
    let answer = scene.calls().acquire(alice(1), ttl(1200), None).await;
    let Ok(AcquireAnswer::Granted(granted)) = answer else { panic!("{answer:?}") };
    scene.hold(alice(1), granted.first, (2, 2)).await;
    scene.pass(secs(600)).await;
    let before = scene.snapshot().await;
    for holds in [(3, 1), (4, 2)] {
        let answer = scene.hold_for(alice(1), granted.first, holds, ttl(7200)).await;
        let HoldAnswer::Held { remaining } = answer else { panic!("{answer:?}") };
        scene.assert_left(remaining, secs(600));
        scene.assert_same(&before, &scene.snapshot().await, "a late hold");
    }
}

/// A hold of no lease, or of one that ran out, is gone and grants nothing.
pub(crate) async fn a_hold_never_grants(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.pass(secs(61)).await;
    assert_eq!(scene.hold(alice(1), fence, (2, 1)).await, HoldAnswer::Gone);
    assert_eq!(scene.free().await, Some(fence));
    let newer = scene.granted(bob(1)).await;
    assert_eq!(scene.hold(alice(1), fence, (2, 1)).await, HoldAnswer::Gone);
    assert_eq!(scene.release(bob(1), newer.first).await, ReleaseAnswer::Released);
    assert_eq!(scene.hold(bob(1), newer.first, (2, 1)).await, HoldAnswer::Gone);
    assert_eq!(scene.free().await, Some(newer.last));
}

/// A hold that names another acquisition or fence changes nothing.
pub(crate) async fn a_hold_needs_id_and_fence(scene: &Scene) {
    let old = scene.granted(alice(1)).await.first;
    scene.release(alice(1), old).await;
    let fence = scene.granted(alice(2)).await.first;
    let before = scene.snapshot().await;
    for (id, fence) in [(alice(2), old), (alice(1), fence), (bob(2), fence), (alice(1), old)] {
        assert_eq!(scene.hold(id, fence, (5, 9)).await, HoldAnswer::Gone);
        scene.assert_same(&before, &scene.snapshot().await, "a hold of another lease");
    }
}
