//! Keeping: a released lock stays closed for exactly a given time, once.

use std::time::Duration;

use leasehold_core::{
    Fence, Ttl,
    store::{ForceReleaseAnswer, HoldAnswer, ReleaseAnswer, RenewAnswer},
};

use crate::contract::{Scene, alice, bob, secs};

async fn kept_for(scene: &Scene, time: Duration) -> Fence {
    let fence = scene.granted(alice(1)).await.first;
    let answer = scene.keep(alice(1), fence, time).await;
    assert_eq!(answer, ReleaseAnswer::Kept { remaining: time });
    fence
}

/// A lock kept for longer than its ttl stays closed for exactly that long.
pub(crate) async fn a_kept_lock_stays_closed_for_exactly_n(scene: &Scene) {
    let fence = kept_for(scene, secs(200)).await;
    scene.assert_left(scene.busy(bob(1)).await, secs(200));
    scene.pass_until_just_before(secs(200)).await;
    scene.busy(bob(1)).await;
    scene.pass_over().await;
    assert!(scene.granted(bob(1)).await.first > fence);
}

/// A lock kept for less than its ttl opens when that time is over.
pub(crate) async fn a_lock_may_be_kept_for_less_than_its_ttl(scene: &Scene) {
    let fence = kept_for(scene, secs(30)).await;
    scene.pass_until_just_before(secs(30)).await;
    scene.busy(bob(1)).await;
    scene.pass_over().await;
    assert!(scene.granted(bob(1)).await.first > fence);
}

/// A kept lease is neither renewed, held, kept again, ended nor withdrawn.
pub(crate) async fn a_lease_is_kept_once(scene: &Scene) {
    let fence = kept_for(scene, secs(90)).await;
    scene.pass(secs(30)).await;
    let before = scene.snapshot().await;
    assert_eq!(scene.renew(alice(1), fence).await, RenewAnswer::Gone);
    assert_eq!(scene.hold(alice(1), fence, (2, 1)).await, HoldAnswer::Gone);
    let ending = scene.release(alice(1), fence).await;
    let keeping = scene.keep(alice(1), fence, secs(600)).await;
    for answer in [ending, keeping] {
        let ReleaseAnswer::Kept { remaining } = answer else { panic!("{answer:?}") };
        scene.assert_left(remaining, secs(60));
    }
    scene.assert_same(&before, &scene.snapshot().await, "a kept lease");
    assert!(!scene.withdraw(alice(1)).await);
    scene.assert_left(scene.busy(bob(1)).await, secs(60));
}

/// A kept lock is closed to the acquisition that held it too, and shows as kept.
pub(crate) async fn a_kept_lock_is_closed_to_its_own_id(scene: &Scene) {
    let fence = kept_for(scene, secs(90)).await;
    scene.assert_left(scene.busy(alice(1)).await, secs(90));
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.fence, holder.holds), (alice(1), fence, 0));
    assert!(holder.kept);
}

/// A kept lock is opened by a forced release of what was inspected.
pub(crate) async fn a_kept_lock_yields_to_an_operator(scene: &Scene) {
    let fence = kept_for(scene, secs(90)).await;
    let answer = scene.force_release(alice(1), fence).await;
    assert!(matches!(answer, ForceReleaseAnswer::Ended { .. }), "{answer:?}");
    scene.granted(bob(1)).await;
}

/// A lock is kept for whole milliseconds, at least one and at most the longest ttl.
pub(crate) async fn a_keep_is_moved_into_its_range(scene: &Scene) {
    let day = Ttl::MAX;
    let asked = [(Duration::from_nanos(3_600_000_999_999), secs(3600)), (day + secs(1), day)];
    for (number, (asked, kept)) in (1..).zip(asked.into_iter().chain([(Duration::MAX, day)])) {
        let fence = scene.granted(alice(number)).await.first;
        let answer = scene.keep(alice(number), fence, asked).await;
        assert_eq!(answer, ReleaseAnswer::Kept { remaining: kept });
        scene.assert_left(scene.busy(bob(1)).await, kept);
        scene.force_release(alice(number), fence).await;
    }
    let fence = scene.granted(alice(9)).await.first;
    let answer = scene.keep(alice(9), fence, Duration::ZERO).await;
    assert_eq!(answer, ReleaseAnswer::Kept { remaining: Duration::from_millis(1) });
}
