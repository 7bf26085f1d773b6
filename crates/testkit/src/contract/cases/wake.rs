//! Waking: a grant out of the queue is told to its runtime, and lives for the claim window.

use leasehold_core::{
    Fence,
    store::{AcquireAnswer, Push, ReleaseAnswer, RenewAnswer},
};

use crate::contract::{Calls, Scene, alice, bob, carol, secs, ttl};

/// A release grants the lock to the first waiter and tells its runtime what it needs to believe
/// it.
pub(crate) async fn a_release_grants_the_first_waiter(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    let released = scene.granted(alice(1)).await;
    scene.queued_with(bob(1), Scene::beat(3)).await;
    assert_eq!(scene.release(alice(1), released.first).await, ReleaseAnswer::Released);
    let (id, granted, heartbeat) = pushes.grant().await;
    assert_eq!((id, heartbeat), (bob(1), 3));
    assert!(granted.first > released.last && granted.last >= granted.first);
    assert_eq!(granted.remaining, Scene::WINDOW);
    assert!(!granted.contended && !granted.regressed);
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.fence, holder.holds), (bob(1), granted.first, 1));
    assert_eq!((&*holder.label, holder.waiters.len()), (Calls::LABEL, 0));
    // The winner that asks finds the same grant, and no place is left.
    let asked = scene.wait_granted(bob(1)).await;
    assert_eq!((asked.first, asked.last), (granted.first, granted.last));
}

/// A grant names its lock, and tells whether others wait behind.
pub(crate) async fn a_grant_tells_its_name_and_who_waits_behind(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    for (number, name) in (1..).zip(["two words\r\n", "größe/Ω 1 2", " "]) {
        let calls = scene.calls().about(name);
        let fence = match calls.acquire(alice(number), ttl(60), None).await {
            Ok(AcquireAnswer::Granted(granted)) => granted.first,
            other => panic!("{other:?}"),
        };
        for id in [bob(number), carol(number)] {
            let beat = Scene::beat(1);
            calls.wait(id, ttl(60), None, beat).await.expect("wait");
        }
        calls.release(alice(number), fence, None).await.expect("release");
        match pushes.told().await {
            Push::Granted { name: told, granted, .. } => {
                assert_eq!(told.as_str(), name);
                assert!(granted.contended);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A grant tells the greatest number of the waiter's signs of life, in whatever order they came.
pub(crate) async fn a_grant_tells_the_greatest_sign_of_life(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    // The numbers are compared as numbers: 9 comes before 10.
    for number in [1, 10, 9, 2] {
        scene.queued_with(bob(1), Scene::beat(number)).await;
    }
    scene.release(alice(1), fence).await;
    assert_eq!(pushes.grant().await.2, 10);
}

/// A grant out of the queue lives for the claim window, and for its ttl once it is renewed.
pub(crate) async fn a_grant_lives_for_the_claim_window_until_it_is_renewed(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.queued(carol(1)).await;
    scene.release(alice(1), fence).await;
    let fence = pushes.grant().await.1.first;
    scene.assert_left(scene.holder().await.remaining, Scene::WINDOW);
    let answer = scene.renew(bob(1), fence).await;
    let RenewAnswer::Renewed { remaining } = answer else { panic!("{answer:?}") };
    scene.assert_left(remaining, secs(60));
    scene.assert_left(scene.holder().await.remaining, secs(60));
}

/// A grant that nobody claims passes on after the claim window.
pub(crate) async fn an_unclaimed_grant_passes_on(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.release(alice(1), fence).await;
    let unclaimed = scene.holder().await.fence;
    scene.queued(carol(1)).await;
    scene.pass_until_just_before(Scene::WINDOW).await;
    assert_eq!(scene.queued(carol(1)).await.ahead, 0);
    scene.pass_over().await;
    let granted = scene.wait_granted(carol(1)).await;
    assert!(granted.first > unclaimed);
    assert_eq!(granted.remaining, Scene::WINDOW);
    assert_eq!(scene.renew(bob(1), unclaimed).await, RenewAnswer::Gone);
}

/// The token of a grant out of the queue is above what the waiter's runtime has seen.
pub(crate) async fn a_waiters_watermark_raises_its_token(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    let seen = fence.get() + 3_600_000_000;
    let seen = Fence::try_from(seen).expect("a token");
    scene.calls().wait(bob(1), ttl(60), Some(seen), Scene::beat(1)).await.expect("wait");
    // A later sign of life that has seen less takes nothing back.
    scene.queued_with(bob(1), Scene::beat(2)).await;
    scene.release(alice(1), fence).await;
    let (_, granted, _) = pushes.grant().await;
    assert_eq!(granted.first.get(), seen.get() + 1);
    assert!(granted.regressed);
}

/// The last listener of a runtime hears its pushes, and hears first that it can.
pub(crate) async fn a_later_listener_takes_the_place_of_an_earlier(scene: &Scene) {
    let earlier = scene.pushes(bob(1)).await;
    let later = scene.pushes(bob(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.release(alice(1), fence).await;
    assert_eq!(later.grant().await.0, bob(1));
    assert_eq!(earlier.drain(), []);
    // Without a listener a grant is found by asking.
    drop((earlier, later));
    let fence = scene.holder().await.fence;
    scene.queued(carol(1)).await;
    scene.queued(bob(2)).await;
    scene.release(bob(1), fence).await;
    let fence = scene.wait_granted(carol(1)).await.first;
    scene.release(carol(1), fence).await;
    scene.wait_granted(bob(2)).await;
}
