//! Releasing and queueing anew in one step: how a turn ends while others of its runtime wait.

use leasehold_core::store::{Granted, Place, ReleaseAnswer};

use crate::contract::{Scene, alice, bob, carol, secs, ttl};

fn granted(answer: ReleaseAnswer) -> Granted {
    match answer {
        ReleaseAnswer::NextGranted(granted) => granted,
        other => panic!("a grant was expected and not {other:?}"),
    }
}

fn queued(answer: ReleaseAnswer) -> Place {
    match answer {
        ReleaseAnswer::NextQueued(place) => place,
        other => panic!("a place was expected and not {other:?}"),
    }
}

/// Who queues anew stands behind those who waited, the first of whom gets the lock.
pub(crate) async fn the_next_queues_behind_the_others(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.queued(carol(1)).await;
    let place = queued(scene.release_and_queue(alice(1), fence, alice(2)).await);
    assert_eq!(place.ahead, 1);
    scene.assert_left(place.remaining, Scene::WINDOW);
    let (id, grant, _) = pushes.grant().await;
    assert_eq!(id, bob(1));
    assert!(grant.contended);
    assert_eq!(scene.waiting().await, [carol(1), alice(2)]);
}

/// Two runtimes that take turns hear that the other waits: who queues anew counts.
pub(crate) async fn who_queues_anew_counts_as_waiting(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    queued(scene.release_and_queue(alice(1), fence, alice(2)).await);
    assert!(pushes.grant().await.1.contended);
}

/// Where nobody waits, the next has the lock at once, for the claim window, with a new block.
pub(crate) async fn the_next_is_granted_where_nobody_waits(scene: &Scene) {
    let pushes = scene.pushes(alice(1)).await;
    let released = scene.granted(alice(1)).await;
    let granted = granted(scene.release_and_queue(alice(1), released.first, alice(2)).await);
    assert!(granted.first > released.last);
    assert_eq!(granted.remaining, Scene::WINDOW);
    assert!(!granted.contended && !granted.regressed);
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.fence), (alice(2), granted.first));
    // Nobody is told what was answered: the next push is that of a later grant.
    scene.queued(alice(3)).await;
    scene.release(alice(2), granted.first).await;
    assert_eq!(pushes.grant().await.0, alice(3));
}

/// Dead waiters keep the lock from nobody who queues anew.
pub(crate) async fn the_next_is_granted_where_the_dead_wait(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.pass(secs(30)).await;
    scene.renew(alice(1), fence).await;
    scene.pass(secs(15)).await;
    granted(scene.release_and_queue(alice(1), fence, alice(2)).await);
    assert_eq!(scene.holder().await.id, alice(2));
    assert!(scene.waiting().await.is_empty());
}

/// The repeat of a release whose answer was lost is told the same, and changes nothing.
pub(crate) async fn a_repeat_is_told_the_same(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    let first = granted(scene.release_and_queue(alice(1), fence, alice(2)).await);
    let before = scene.snapshot().await;
    let again = granted(scene.release_and_queue(alice(1), fence, alice(2)).await);
    assert_eq!((again.first, again.last), (first.first, first.last));
    scene.assert_left(again.remaining, Scene::WINDOW);
    scene.assert_same(&before, &scene.snapshot().await, "a repeat that is told a grant");

    scene.queued(bob(1)).await;
    let place = queued(scene.release_and_queue(alice(2), first.first, alice(3)).await);
    let before = scene.snapshot().await;
    let again = queued(scene.release_and_queue(alice(2), first.first, alice(3)).await);
    assert_eq!(again.ahead, place.ahead);
    scene.assert_left(again.remaining, Scene::WINDOW);
    scene.assert_same(&before, &scene.snapshot().await, "a repeat that is told a place");
}

/// The report about a place is no sign of life.
pub(crate) async fn a_repeat_keeps_no_place_alive(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    queued(scene.release_and_queue(alice(1), fence, alice(2)).await);
    scene.renew_for(bob(1), scene.holder().await.fence, ttl(600)).await;
    scene.pass(secs(30)).await;
    queued(scene.release_and_queue(alice(1), fence, alice(2)).await);
    scene.pass(secs(15)).await;
    assert!(scene.waiting().await.is_empty());
}

/// A release of another lease queues nobody.
pub(crate) async fn a_release_of_no_lease_queues_nobody(scene: &Scene) {
    let old = scene.granted(alice(1)).await.first;
    scene.release(alice(1), old).await;
    assert_eq!(scene.release_and_queue(alice(1), old, alice(2)).await, ReleaseAnswer::Gone);
    scene.free().await;
    let fence = scene.granted(bob(1)).await.first;
    scene.queued(alice(4)).await;
    let before = scene.snapshot().await;
    for (id, fence, next) in
        [(alice(1), old, alice(2)), (bob(1), old, bob(2)), (alice(1), fence, alice(3))]
    {
        assert_eq!(scene.release_and_queue(id, fence, next).await, ReleaseAnswer::Gone);
        scene.assert_same(&before, &scene.snapshot().await, "a release of another lease");
    }
}

/// A next that was withdrawn is not queued; the lease ends all the same, and goes on.
pub(crate) async fn a_withdrawn_next_is_not_queued(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.withdraw(alice(2)).await;
    let answer = scene.release_and_queue(alice(1), fence, alice(2)).await;
    assert_eq!(answer, ReleaseAnswer::Released);
    scene.free().await;
    let fence = scene.granted(alice(3)).await.first;
    scene.queued(bob(1)).await;
    scene.withdraw(alice(4)).await;
    let answer = scene.release_and_queue(alice(3), fence, alice(4)).await;
    assert_eq!(answer, ReleaseAnswer::Released);
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.waiters.len()), (bob(1), 0));
}

/// A next that comes after a newer acquisition of its runtime is not queued, and the older place
/// of a runtime gives way to its next.
pub(crate) async fn a_next_is_the_newest_of_its_runtime(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.queued(alice(3)).await;
    let answer = scene.release_and_queue(alice(1), fence, alice(2)).await;
    assert_eq!(answer, ReleaseAnswer::Released);
    let holder = scene.holder().await;
    assert_eq!(holder.id, bob(1));
    assert_eq!(scene.waiting().await, [alice(3)]);
    scene.queued(bob(2)).await;
    scene.queued(carol(1)).await;
    let place = queued(scene.release_and_queue(bob(1), holder.fence, bob(3)).await);
    assert_eq!(place.ahead, 1);
    assert_eq!(scene.holder().await.id, alice(3));
    assert_eq!(scene.waiting().await, [carol(1), bob(3)]);
}

/// A lock that is kept closed is not ended, and queues nobody.
pub(crate) async fn keeping_wins_over_queueing(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    let next = scene.waiter(alice(2));
    let keep = Some(secs(90));
    let answer = scene.calls().release_and_queue(alice(1), fence, keep, &next).await;
    assert_eq!(answer, Ok(ReleaseAnswer::Kept { remaining: secs(90) }));
    assert_eq!(scene.waiting().await, [bob(1)]);
    assert!(scene.holder().await.kept);
}

/// The next is granted or queued under the sign of life of its release.
pub(crate) async fn the_next_is_queued_under_the_releases_sign_of_life(scene: &Scene) {
    let pushes = scene.pushes(alice(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    queued(scene.release_and_queue(alice(1), fence, alice(2)).await);
    let holder = scene.holder().await;
    scene.release(holder.id, holder.fence).await;
    let (id, _, heartbeat) = pushes.grant().await;
    assert_eq!((id, heartbeat), (alice(2), 7));
}
