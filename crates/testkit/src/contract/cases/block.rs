//! Blocks: how many tokens a grant gets, and that nobody else gets one of them (P2).

use leasehold_core::store::{Granted, ReleaseAnswer};

use crate::contract::{Scene, alice, bob, carol};

fn length(granted: &Granted) -> u64 {
    granted.last.get() - granted.first.get() + 1
}

/// A first grant gets one token: nobody knows which others are taken.
pub(crate) async fn a_grant_without_a_counter_gets_one_token(scene: &Scene) {
    let granted = scene.granted(alice(1)).await;
    assert_eq!(length(&granted), 1);
    scene.tokens_pass(2).await;
    scene.subject().lose_all().await;
    assert_eq!(length(&scene.wait_granted(alice(2)).await), 1);
}

/// A grant gets 1024 tokens where nobody else waits.
pub(crate) async fn a_grant_alone_gets_1024_tokens(scene: &Scene) {
    let mut released = scene.granted(alice(1)).await;
    for number in 1..3 {
        scene.tokens_pass(2).await;
        let (id, next) = (alice(number), alice(number + 1));
        let answer = scene.release_and_queue(id, released.first, next).await;
        let ReleaseAnswer::NextGranted(granted) = answer else { panic!("{answer:?}") };
        assert_eq!(length(&granted), 1024);
        assert!(granted.first > released.last);
        released = granted;
    }
    scene.release(alice(3), released.first).await;
    scene.tokens_pass(2).await;
    let granted = scene.granted(bob(1)).await;
    assert_eq!(length(&granted), 1024);
    assert!(granted.first > released.last);
}

/// A grant gets as many while others wait, those who come anew among them.
pub(crate) async fn a_grant_while_others_wait_gets_1024_tokens(scene: &Scene) {
    let pushes = [scene.pushes(bob(1)).await, scene.pushes(carol(1)).await];
    let released = scene.granted(alice(1)).await;
    scene.queued(bob(1)).await;
    scene.queued(carol(1)).await;
    scene.tokens_pass(2).await;
    scene.release(alice(1), released.first).await;
    let (_, granted, _) = pushes[0].grant().await;
    assert_eq!((length(&granted), granted.contended), (1024, true));
    assert!(granted.first > released.last);
    scene.tokens_pass(2).await;
    scene.release_and_queue(bob(1), granted.first, bob(2)).await;
    let (_, granted, _) = pushes[1].grant().await;
    assert_eq!((length(&granted), granted.contended), (1024, true));
    scene.tokens_pass(2).await;
    scene.release(carol(1), granted.first).await;
    let (_, granted, _) = pushes[0].grant().await;
    assert_eq!((length(&granted), granted.contended), (1024, false));
}

/// A block never runs ahead of the clock, nor back into tokens that were granted.
pub(crate) async fn a_block_lies_between_the_counter_and_the_clock(scene: &Scene) {
    let mut last = None;
    for number in 0..30 {
        if number % 7 == 0 {
            scene.tokens_pass(1).await;
        }
        let granted = scene.granted(alice(number)).await;
        let now = scene.subject().server_micros().await;
        assert!(Some(granted.first) > last && granted.last >= granted.first);
        // Where no time passed since the last grant, a token is one ahead of the clock.
        let ahead = granted.last.get().saturating_sub(now);
        assert!(ahead == 0 || length(&granted) == 1, "{granted:?} at {now}");
        // The whole block is reserved.
        last = Some(granted.last);
        scene.release(alice(number), granted.first).await;
        assert_eq!(scene.free().await, last);
    }
}

/// Under a plain counter a block is one token, unless others wait: then it serves as many tasks as
/// any other.
pub(crate) async fn a_plain_counters_blocks_are_single_tokens_while_nobody_waits(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    let first = scene.granted(alice(1)).await;
    scene.queued(bob(1)).await;
    scene.release_and_queue(alice(1), first.first, alice(2)).await;
    let (_, second, _) = pushes.grant().await;
    scene.release(bob(1), second.first).await;
    let third = scene.wait_granted(alice(2)).await;
    let blocks = [first, second, third].map(|granted| (granted.first.get(), granted.last.get()));
    assert_eq!(blocks, [(1, 1), (2, 1025), (1026, 1026)]);
}
