use leasehold::{
    Released,
    error::{AcquireError, OptionsError},
};

use crate::support::{World, just_before, lock, millis, nanos, on_every_store, secs};

/// Exactly the rest is kept, also when it is longer than the ttl.
#[tokio::test]
async fn a_release_before_the_minimum_keeps_the_lock_closed_for_exactly_the_rest() {
    // The ttl is 10 s.
    for minimum in [millis(500), secs(5), secs(60)] {
        let world = World::new();
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let guard = lock(&locks).acquire().min_hold(minimum).await.unwrap();
        let fence = guard.fence();
        world.pass(millis(200)).await;
        let left = minimum.saturating_sub(millis(200));
        assert_eq!(guard.release().await.unwrap(), Released::Kept { remaining: left });
        for locks in [&locks, &other] {
            assert!(lock(locks).try_acquire().await.unwrap().is_none(), "it is kept closed");
        }
        world.pass(just_before(left)).await;
        assert!(lock(&other).try_acquire().await.unwrap().is_none(), "until the last moment");
        world.pass(nanos(1)).await;
        let next = lock(&other).try_acquire().await.unwrap().expect("its time is over");
        assert!(next.fence() > fence);
    }
}

on_every_store! {
    /// The rest of a lease that was held for longer than its minimum is nothing.
    async fn after_the_minimum_a_release_is_as_ever(world: World) {
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().min_hold(millis(1)).await.unwrap();
        world.until("the minimum is over", async || {
            world.holder(World::NAME).await.unwrap().held_for > millis(5)
        })
        .await;
        assert_eq!(guard.release().await.unwrap(), Released::Ended);
        assert!(world.holder(World::NAME).await.is_none());
    }

    /// The server itself keeps the rest as the time to live of the key.
    async fn the_store_shows_a_kept_lock_and_its_rest(world: World) {
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().min_hold(secs(3600)).await.unwrap();
        let (id, fence) = (guard.id(), guard.fence());
        let Released::Kept { remaining } = guard.release().await.unwrap() else {
            panic!("an hour is not over");
        };
        let kept = world.holder(World::NAME).await.expect("it is closed");
        assert_eq!((kept.id, kept.fence, kept.holds, kept.kept), (id, fence, 0, true));
        assert!(remaining <= secs(3600) && kept.remaining <= remaining);
        // Far above the ttl of 10 s, and above what a busy machine takes.
        assert!(kept.remaining > secs(3000), "{kept:?}");
        assert!(lock(&locks).try_acquire().await.unwrap().is_none());
    }

    /// Who tried and found it kept is told by whom, since when and until when.
    async fn a_timeout_tells_who_keeps_it_closed(world: World) {
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let guard = lock(&locks).acquire().min_hold(secs(3600)).await.unwrap();
        let id = guard.id();
        guard.release().await.unwrap();
        let waited = lock(&other).acquire().wait(secs(0)).await;
        let Err(AcquireError::Timeout(timeout)) = waited else { panic!("{waited:?}") };
        let holder = timeout.holder.as_ref().expect("it was found out");
        assert!(holder.kept && holder.lease == id && !holder.this_runtime);
        assert!(holder.remaining > secs(3000));
        let words = timeout.to_string();
        for word in ["kept closed for another", "that began", "ago", &id.to_string()] {
            assert!(words.contains(word), "{word}: {words}");
        }
        let here = lock(&locks).acquire().wait(secs(0)).await.unwrap_err().to_string();
        assert!(!here.contains("owner.scope()"), "re-entry does not help: {here}");
    }
}

#[tokio::test]
async fn a_minimum_is_at_most_a_day() {
    let world = World::new();
    let locks = world.runtime(1);
    let day = secs(86_400);
    let refused = lock(&locks).acquire().min_hold(day + millis(1)).await;
    let Err(error @ AcquireError::Options { option: OptionsError::MinHold, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(error.to_string().contains("min_hold()"), "{error}");
    let guard = lock(&locks).acquire().min_hold(day).await.unwrap();
    assert_eq!(guard.release().await.unwrap(), Released::Kept { remaining: day });
}
