//! Twice is once (P4): every command may run again, at once or late.

use leasehold_core::store::AcquireAnswer;

use crate::contract::{Copied, Scene, alice, bob, carol, secs, ttl};

/// A second run of a command, right after the first, leaves everything as it is.
pub(crate) async fn every_command_may_run_twice(scene: &Scene) {
    for command in Copied::ALL {
        let fence = scene.granted(alice(1)).await.first;
        command.send(scene, alice(1), fence).await;
        let before = scene.snapshot().await;
        command.send(scene, alice(1), fence).await;
        scene.assert_same(&before, &scene.snapshot().await, &format!("{command:?} twice"));
        scene.subject().lose_all().await;
    }
}

/// A second run of a command while others wait leaves everything as it is, too: one grant for one
/// release, one place for one wait.
pub(crate) async fn every_command_may_run_twice_while_others_wait(scene: &Scene) {
    for command in Copied::WITH_QUEUE {
        let fence = scene.granted(alice(1)).await.first;
        scene.queued(bob(1)).await;
        scene.queued(carol(1)).await;
        command.send(scene, alice(1), fence).await;
        let before = scene.snapshot().await;
        for _ in 0..2 {
            command.send(scene, alice(1), fence).await;
            scene.assert_same(&before, &scene.snapshot().await, &format!("{command:?} twice"));
        }
        scene.subject().lose_all().await;
    }
}

/// A second run of a waiter's command leaves everything as it is.
pub(crate) async fn every_command_of_a_waiter_may_run_twice(scene: &Scene) {
    for command in Copied::WITH_QUEUE {
        let fence = scene.granted(alice(1)).await.first;
        scene.queued(bob(1)).await;
        scene.queued(carol(1)).await;
        command.send(scene, bob(1), fence).await;
        let before = scene.snapshot().await;
        command.send(scene, bob(1), fence).await;
        scene.assert_same(&before, &scene.snapshot().await, &format!("{command:?} of a waiter"));
        assert_eq!(scene.holder().await.id, alice(1), "{command:?} of a waiter");
        scene.subject().lose_all().await;
    }
}

/// A copy that arrives when the lock is another's changes nothing for the holder.
pub(crate) async fn every_command_may_run_late(scene: &Scene) {
    for command in Copied::ALL {
        let fence = scene.granted(alice(1)).await.first;
        command.send(scene, alice(1), fence).await;
        scene.force_release(alice(1), fence).await;
        scene.granted(bob(1)).await;
        let before = scene.snapshot().await;
        command.send(scene, alice(1), fence).await;
        scene.assert_same(&before, &scene.snapshot().await, &format!("{command:?} late"));
        scene.subject().lose_all().await;
    }
}

/// A copy that arrives when the lock is free leaves it free, if it is no acquire.
pub(crate) async fn only_an_acquire_leaves_anything_on_a_free_lock(scene: &Scene) {
    for command in Copied::ALL.into_iter().filter(|command| *command != Copied::Acquire) {
        let fence = scene.granted(alice(1)).await.first;
        command.send(scene, alice(1), fence).await;
        scene.force_release(alice(1), fence).await;
        let last = scene.free().await;
        command.send(scene, alice(1), fence).await;
        assert_eq!(scene.free().await, last, "{command:?} on a free lock");
        scene.subject().lose_all().await;
    }
}

/// A late copy of an acquire that was not withdrawn costs others one ttl, no more: the lease has
/// a fence of its own, so that nothing that its holder knows extends or holds it.
pub(crate) async fn a_late_acquire_costs_one_unrenewed_lease(scene: &Scene) {
    let first = scene.granted(alice(1)).await.first;
    scene.release(alice(1), first).await;
    let ghost = scene.granted(alice(1)).await.first;
    assert!(ghost > first);
    scene.renew_for(alice(1), first, ttl(600)).await;
    scene.hold_for(alice(1), first, (2, 1), ttl(600)).await;
    assert!(matches!(scene.acquire(bob(1)).await, AcquireAnswer::Busy { .. }));
    scene.pass(secs(61)).await;
    scene.granted(bob(1)).await;
}

/// A late copy of a wait whose acquisition is over costs others one claim window, no more.
pub(crate) async fn a_late_wait_costs_one_claim_window(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.release(alice(1), fence).await;
    let fence = scene.holder().await.fence;
    scene.release(bob(1), fence).await;
    let fence = scene.granted(alice(2)).await.first;
    // The ghost of Bob's acquisition.
    scene.queued(bob(1)).await;
    scene.queued(carol(1)).await;
    scene.release(alice(2), fence).await;
    assert_eq!(scene.holder().await.id, bob(1));
    scene.pass(secs(30)).await;
    scene.queued(carol(1)).await;
    scene.pass(secs(15)).await;
    assert_eq!(scene.wait_granted(carol(1)).await.remaining, Scene::WINDOW);
}
