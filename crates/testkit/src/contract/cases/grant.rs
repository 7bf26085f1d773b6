//! Acquiring: who gets the lock, and what the others hear.

use std::time::Duration;

use leasehold_core::{Ttl, store::AcquireAnswer};

use crate::contract::{Scene, alice, bob, secs, ttl};

/// A free lock is granted for the whole ttl, as a block of one token.
pub(crate) async fn a_free_lock_is_granted(scene: &Scene) {
    let granted = scene.granted(alice(1)).await;
    assert_eq!(granted.first, granted.last);
    assert_eq!(granted.remaining, Scene::TTL);
    assert!(!granted.regressed);
    assert_eq!(scene.holder().await.id, alice(1));
}

/// A repeat by the same id is told the same block and what is left: it does not renew.
pub(crate) async fn a_repeated_acquire_finds_the_same_grant_unrenewed(scene: &Scene) {
    let granted = scene.granted(alice(1)).await;
    scene.pass(secs(30)).await;
    let again = scene.granted(alice(1)).await;
    assert_eq!((again.first, again.last), (granted.first, granted.last));
    scene.assert_left(again.remaining, secs(30));
    scene.assert_left(scene.holder().await.remaining, secs(30));
}

/// A busy lock tells what is left of the present lease, to the holder's own runtime too.
pub(crate) async fn a_busy_lock_tells_how_long(scene: &Scene) {
    scene.granted(alice(1)).await;
    scene.assert_left(scene.busy(bob(1)).await, secs(60));
    scene.pass(secs(30)).await;
    scene.assert_left(scene.busy(bob(1)).await, secs(30));
    scene.assert_left(scene.busy(alice(2)).await, secs(30));
    assert_eq!(scene.holder().await.id, alice(1));
}

/// A lease that nobody renews ends after its ttl and not before.
pub(crate) async fn an_expired_lease_frees_the_lock(scene: &Scene) {
    let granted = scene.granted(alice(1)).await;
    scene.pass_until_just_before(Scene::TTL).await;
    scene.busy(bob(1)).await;
    scene.pass_over().await;
    assert_eq!(scene.free().await, Some(granted.last));
    assert!(scene.granted(bob(1)).await.first > granted.last);
}

/// What happens to one name happens to no other.
pub(crate) async fn names_do_not_touch_each_other(scene: &Scene) {
    let first = scene.granted(alice(1)).await.first;
    let other = scene.calls().about("orders/43");
    let answer = other.acquire(alice(1), ttl(60), None).await.expect("acquire");
    let AcquireAnswer::Granted(granted) = answer else { panic!("{answer:?}") };
    other.release(alice(1), granted.first, None).await.expect("release");
    assert_eq!(scene.holder().await.fence, first);
}

/// Any name that is one can be locked, whatever it contains.
pub(crate) async fn any_name_is_a_lock(scene: &Scene) {
    let long = "x".repeat(512);
    for name in ["a", "a}b{c}", "{", "two words\r\n", "größe/Ω", "*", "a:lease", &long] {
        let calls = scene.calls().about(name);
        let answer = calls.acquire(alice(1), ttl(60), None).await.expect("acquire");
        assert!(matches!(answer, AcquireAnswer::Granted(_)), "{name:?}: {answer:?}");
    }
}

/// The shortest and the longest ttl are granted as they are asked for.
pub(crate) async fn the_shortest_and_the_longest_ttl_are_granted(scene: &Scene) {
    for (number, time) in [(1, Ttl::MAX), (2, Ttl::MIN), (3, Duration::from_millis(12_345))] {
        let asked = Ttl::new(time).expect("a ttl");
        let answer = scene.calls().acquire(alice(number), asked, None).await.expect("acquire");
        let AcquireAnswer::Granted(granted) = answer else { panic!("{time:?}: {answer:?}") };
        assert_eq!(granted.remaining, time);
        scene.release(alice(number), granted.first).await;
    }
}
