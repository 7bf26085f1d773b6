//! The loss of one key while the others stay: an eviction.

use leasehold_core::{
    Fence,
    seam::Part,
    store::{AcquireAnswer, ReleaseAnswer, RenewAnswer},
};

use crate::contract::{Scene, alice, bob, carol};

/// Every part of which a scene loses one at a time.
const PARTS: [Part; 4] = [Part::Lock, Part::Queue, Part::Waiters, Part::Marks];

/// A new waiter that comes after the loss of any one key makes no key without an end.
pub(crate) async fn a_new_waiter_leaves_no_immortal_key_after_a_loss(scene: &Scene) {
    for part in PARTS {
        lose(scene, part).await;
        let answer = scene.wait(carol(1)).await;
        assert_ends(scene, part).await;
        // Also of a free lock: bob has waited for longer.
        let is_queued = matches!(answer, AcquireAnswer::Queued(_));
        assert!(is_queued, "{part:?} was lost, and carol is told {answer:?}");
        scene.subject().lose_all().await;
    }
}

/// A withdrawal that comes after the loss of any one key makes no key without an end, and hinders
/// nobody who waits.
pub(crate) async fn a_withdrawal_leaves_no_immortal_key_after_a_loss(scene: &Scene) {
    for part in PARTS {
        let fence = lose(scene, part).await;
        scene.withdraw(carol(1)).await;
        scene.wait_with(bob(1), Scene::beat(2)).await;
        scene.release(alice(1), fence).await;
        assert_eq!(scene.holder().await.id, bob(1), "{part:?} was lost");
        assert_ends(scene, part).await;
        scene.subject().lose_all().await;
    }
}

/// A runtime that waited when one key was lost is heard again, and served in the end.
pub(crate) async fn those_who_waited_go_on_after_a_loss(scene: &Scene) {
    for part in PARTS {
        let fence = lose(scene, part).await;
        for number in [2, 3] {
            scene.wait_with(bob(1), Scene::beat(number)).await;
        }
        scene.release(alice(1), fence).await;
        assert_eq!(scene.holder().await.id, bob(1), "{part:?} was lost");
        assert_ends(scene, part).await;
        scene.subject().lose_all().await;
    }
}

/// A holder whose lease stands renews and ends it, whatever else is lost.
pub(crate) async fn a_holder_ends_its_lease_after_a_loss(scene: &Scene) {
    for part in PARTS {
        let fence = lose(scene, part).await;
        let renewed = scene.renew(alice(1), fence).await;
        let released = scene.release_and_queue(alice(1), fence, alice(2)).await;
        let stood = part != Part::Lock;
        assert_eq!(matches!(renewed, RenewAnswer::Renewed { .. }), stood, "{part:?} was lost");
        assert_eq!(released != ReleaseAnswer::DataLost, stood, "{part:?} was lost");
        assert_ends(scene, part).await;
        scene.subject().lose_all().await;
    }
}

/// Alice holds, bob waits, an acquisition of carol's is withdrawn; then one part is lost.
async fn lose(scene: &Scene, part: Part) -> Fence {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.withdraw(carol(9)).await;
    scene.subject().lose_part(scene.name(), part).await;
    fence
}

/// Nothing stays for ever. Last in a case: on a clock that is not real, it lets all time pass.
async fn assert_ends(scene: &Scene, part: Part) {
    let left_behind = scene.subject().left_behind().await;
    assert!(left_behind.is_empty(), "{part:?} was lost, and {left_behind:?} stays for ever");
}
