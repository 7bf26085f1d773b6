//! Fences: every grant gets a token above all tokens before it (P2).

use std::time::Duration;

use leasehold_core::{
    Fence, StoreErrorKind,
    seam::Part,
    store::{ForceReleaseAnswer, Place, ReleaseAnswer},
};

use crate::contract::{RETENTION, Scene, alice, bob, carol, ttl};

/// A token so many hours after another, as the clock counts.
fn hours_after(token: Fence, hours: u64) -> Fence {
    Fence::try_from(token.get() + hours * 3_600_000_000).expect("a token")
}

/// Grants and ends a lease; its token.
async fn grant(scene: &Scene, number: u64) -> Fence {
    let granted = scene.granted(alice(number)).await;
    assert_eq!(scene.release(alice(number), granted.first).await, ReleaseAnswer::Released);
    granted.last
}

/// Tokens grow from grant to grant, of any runtime.
pub(crate) async fn every_grant_has_a_greater_fence(scene: &Scene) {
    let mut last = None;
    for number in 0..50 {
        let id = if number % 2 == 0 { alice(number) } else { bob(number) };
        let granted = scene.granted(id).await;
        assert!(Some(granted.first) > last, "{:?} after {last:?}", granted.first);
        assert!(!granted.regressed);
        last = Some(granted.last);
        scene.release(id, granted.first).await;
    }
}

/// Tokens grow across the loss of everything.
pub(crate) async fn fences_grow_after_a_total_loss(scene: &Scene) {
    let mut last = None;
    for number in 0..5 {
        let granted = scene.granted(alice(number)).await;
        assert!(Some(granted.first) > last, "{:?} after {last:?}", granted.first);
        last = Some(granted.last);
        scene.subject().lose_all().await;
        assert_eq!(scene.free().await, None);
    }
}

/// Tokens grow across a restart that leaves no data.
pub(crate) async fn fences_grow_after_a_restart_without_data(scene: &Scene) {
    let first = scene.granted(alice(1)).await.last;
    scene.subject().restart().await;
    // The first command finds the old connection dead, and says so.
    let probed = scene.calls().acquire(alice(2), ttl(60), None).await;
    if let Err(error) = &probed {
        assert!(error.kind().is_transient(), "{error}");
    }
    assert!(scene.granted(alice(2)).await.first > first);
}

/// Tokens grow when the counter is lost, and the lease with it.
pub(crate) async fn fences_grow_after_the_counter_is_lost(scene: &Scene) {
    let last = scene.granted(alice(1)).await.last;
    scene.subject().lose_part(scene.name(), Part::Lock).await;
    assert_eq!(scene.free().await, None);
    assert!(scene.granted(bob(1)).await.first > last);
}

/// Tokens grow when nobody used the name for longer than its counter is retained.
pub(crate) async fn fences_grow_after_the_counter_retired(scene: &Scene) {
    let fence = grant(scene, 1).await;
    // It may live an eighth longer, so that few grants have to refresh it.
    scene.pass(RETENTION + RETENTION / 8).await;
    assert_eq!(scene.free().await, None);
    assert!(scene.granted(bob(1)).await.first > fence);
}

/// A watermark above the counter raises the token, and the loss that it shows is told.
pub(crate) async fn a_watermark_is_honoured_and_the_regression_told(scene: &Scene) {
    let fence = grant(scene, 1).await;
    let seen = hours_after(fence, 1);
    let granted = scene.granted_seeing(alice(2), Some(seen)).await;
    assert_eq!(granted.first.get(), seen.get() + 1);
    assert!(granted.regressed);
    scene.release(alice(2), granted.first).await;
    // What the counter already knows is no regression.
    let granted = scene.granted_seeing(alice(3), Some(granted.first)).await;
    assert_eq!(granted.first.get(), seen.get() + 2);
    assert!(!granted.regressed);
}

/// A watermark more than a day ahead is a mistake of some clock, and no memory of a grant.
pub(crate) async fn a_watermark_a_day_ahead_is_ignored(scene: &Scene) {
    let fence = grant(scene, 1).await;
    let granted = scene.granted_seeing(alice(2), Some(hours_after(fence, 25))).await;
    assert!(granted.first > fence && granted.first < hours_after(fence, 1));
    assert!(!granted.regressed);
}

/// After the last token no lease is granted, while leases still end.
pub(crate) async fn an_exhausted_counter_refuses_grants_and_ends_leases(scene: &Scene) {
    scene.subject().exhaust(scene.name()).await;
    let granted = scene.granted(alice(1)).await;
    assert_eq!(granted.last.get(), Fence::MAX);
    assert_eq!(scene.release(alice(1), granted.first).await, ReleaseAnswer::Released);
    let error = scene.calls().acquire(alice(2), ttl(60), None).await.expect_err("no token is left");
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert_eq!(error.lock(), Some(scene.name()));
    assert_eq!(scene.free().await, Some(granted.last));

    scene.subject().exhaust(scene.name()).await;
    let granted = scene.granted(bob(1)).await;
    let answer = scene.force_release(bob(1), granted.first).await;
    assert_eq!(answer, ForceReleaseAnswer::Ended { fence: None });
    scene.free().await;
}

/// Without a token left a lease still ends; who waits keeps its place and hears why, and who
/// queues anew does, too.
pub(crate) async fn an_exhausted_counter_keeps_the_waiters(scene: &Scene) {
    scene.subject().exhaust(scene.name()).await;
    let granted = scene.granted(alice(1)).await;
    scene.queued(bob(1)).await;
    let answer = scene.release_and_queue(alice(1), granted.first, alice(2)).await;
    assert_eq!(answer, ReleaseAnswer::NextQueued(Place { remaining: Duration::ZERO, ahead: 1 }));
    assert_eq!(scene.free().await, Some(granted.last));
    let beat = Scene::beat(2);
    for id in [bob(1), alice(2)] {
        let error = scene.calls().wait(id, ttl(60), None, beat).await.expect_err("no token");
        assert_eq!(error.kind(), StoreErrorKind::Corrupt);
        assert_eq!(error.lock(), Some(scene.name()));
    }
    assert!(scene.calls().acquire(carol(1), ttl(60), None).await.is_err());
    // A place is there still: the repeat of the release finds it.
    let answer = scene.release_and_queue(alice(1), granted.first, alice(2)).await;
    assert_eq!(answer, ReleaseAnswer::NextQueued(Place { remaining: Duration::ZERO, ahead: 1 }));
}

/// A plain counter counts from 1, by one.
pub(crate) async fn a_plain_counter_counts(scene: &Scene) {
    for expected in 1..=5 {
        assert_eq!(grant(scene, expected).await.get(), expected);
    }
    let granted = scene.granted(bob(1)).await;
    let answer = scene.force_release(bob(1), granted.first).await;
    assert_eq!(answer, ForceReleaseAnswer::Ended { fence: Fence::try_from(7_u64).ok() });
}

/// The control arm of the floor: without it, a loss of data repeats tokens.
pub(crate) async fn a_plain_counter_repeats_tokens_after_a_loss(scene: &Scene) {
    let before = [grant(scene, 1).await, grant(scene, 2).await];
    scene.subject().lose_all().await;
    let after = [grant(scene, 3).await, grant(scene, 4).await];
    assert_eq!(before, after, "this policy is documented to do damage here");
}

/// A plain counter that was lost goes on above what the asker has seen.
pub(crate) async fn a_watermark_heals_a_plain_counter(scene: &Scene) {
    grant(scene, 1).await;
    let seen = grant(scene, 2).await;
    scene.subject().lose_all().await;
    let granted = scene.granted_seeing(alice(3), Some(seen)).await;
    assert_eq!(granted.first.get(), 3);
    assert!(granted.regressed);
}
