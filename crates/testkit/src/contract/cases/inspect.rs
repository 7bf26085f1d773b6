//! Looking: who holds a lock, since when, for how long.

use crate::contract::{Calls, Scene, alice, bob, carol, secs, ttl};

/// A free lock tells the last token that was granted, if there was one.
pub(crate) async fn a_free_lock_tells_its_last_fence(scene: &Scene) {
    assert_eq!(scene.free().await, None);
    let granted = scene.granted(alice(1)).await;
    scene.release(alice(1), granted.first).await;
    assert_eq!(scene.free().await, Some(granted.last));
}

/// A held lock tells its holder, the fence, the holds, and both times.
pub(crate) async fn a_held_lock_tells_its_holder(scene: &Scene) {
    let fence = scene.granted(alice(7)).await.first;
    scene.hold(alice(7), fence, (3, 1)).await;
    scene.pass(secs(30)).await;
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.fence, holder.holds), (alice(7), fence, 3));
    assert_eq!(holder.label, Calls::LABEL);
    assert!(!holder.kept);
    scene.assert_left(holder.remaining, secs(30));
    // What the remaining time may fall short by, the past may exceed.
    assert!(holder.held_for >= secs(30), "{:?}", holder.held_for);
    assert!(holder.held_for <= secs(30) + scene.subject().slack(), "{:?}", holder.held_for);
}

/// A look writes nothing, at a free lock, a held one or a kept one.
pub(crate) async fn a_look_changes_nothing(scene: &Scene) {
    let looks_the_same = async |what| {
        let before = scene.snapshot().await;
        scene.inspect().await;
        scene.assert_same(&before, &scene.snapshot().await, what);
    };
    looks_the_same("unknown").await;
    let fence = scene.granted(alice(1)).await.first;
    looks_the_same("held").await;
    scene.keep(alice(1), fence, secs(90)).await;
    looks_the_same("kept").await;
    scene.force_release(alice(1), fence).await;
    looks_the_same("free").await;
}

/// A look shows who waits: the next one first, with its label, how long it has waited, and how
/// long it was silent; those silent for too long are left out.
pub(crate) async fn a_look_shows_who_waits(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.renew_for(alice(1), fence, ttl(600)).await;
    assert!(scene.waiting().await.is_empty());
    scene.queued(alice(2)).await;
    scene.pass(secs(30)).await;
    scene.queued(carol(3)).await;
    scene.queued(bob(1)).await;
    scene.pass(secs(15)).await;
    let waiters = scene.holder().await.waiters;
    let found: Vec<_> = waiters.iter().map(|waiter| waiter.id).collect();
    assert_eq!(found, [carol(3), bob(1)]);
    for waiter in waiters {
        assert_eq!(waiter.label, Calls::LABEL);
        for time in [waiter.silent_for, waiter.waiting_for] {
            assert!((secs(15)..=secs(15) + scene.subject().slack()).contains(&time), "{time:?}");
        }
    }
    // A heartbeat keeps the place, and with it the time.
    scene.queued(carol(3)).await;
    scene.pass(secs(5)).await;
    let waiters = scene.holder().await.waiters;
    let times = |index: usize| (waiters[index].waiting_for, waiters[index].silent_for);
    let slack = scene.subject().slack();
    for (time, least) in [(times(0).0, 20), (times(0).1, 5), (times(1).0, 20), (times(1).1, 20)] {
        assert!((secs(least)..=secs(least) + slack).contains(&time), "{time:?} and not {least} s");
    }
}
