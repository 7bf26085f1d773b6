//! Readers: they share one lease and one fence, and take turns with writers.

use leasehold_core::{
    AcquisitionId, Fence, Mode,
    seam::Part,
    store::{AcquireAnswer, ForceReleaseAnswer, Granted, Push, ReleaseAnswer, RenewAnswer},
};

use crate::contract::{Scene, alice, bob, carol, secs, ttl};

async fn read(scene: &Scene, id: AcquisitionId) -> AcquireAnswer {
    seeing(scene, id, None).await
}

async fn seeing(scene: &Scene, id: AcquisitionId, seen: Option<Fence>) -> AcquireAnswer {
    let calls = scene.calls().to(Mode::Read);
    calls.wait(id, ttl(60), seen, Scene::beat(1)).await.expect("a reader is answered")
}

async fn reads(scene: &Scene, id: AcquisitionId) -> Granted {
    match read(scene, id).await {
        AcquireAnswer::Granted(granted) => granted,
        other => panic!("{id} expected to read and got {other:?}"),
    }
}

async fn waits_to_read(scene: &Scene, id: AcquisitionId) {
    let answer = read(scene, id).await;
    assert!(matches!(answer, AcquireAnswer::Queued(_)), "{id} got {answer:?}");
}

async fn try_to_read(scene: &Scene, id: AcquisitionId) -> AcquireAnswer {
    scene.calls().to(Mode::Read).acquire(id, ttl(60), None).await.expect("a reader is answered")
}

/// All readers have the token of the first, and a repeat finds the same grant.
pub(crate) async fn readers_share_one_fence(scene: &Scene) {
    let before = scene.granted(bob(9)).await;
    scene.release(bob(9), before.first).await;
    let first = reads(scene, alice(1)).await;
    assert!(first.first == first.last && first.first > before.last, "{first:?}");
    assert_eq!(reads(scene, bob(1)).await, first);
    assert!(matches!(try_to_read(scene, carol(1)).await, AcquireAnswer::Granted(_)));
    assert_eq!(reads(scene, bob(1)).await.first, first.first);
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.mode, holder.fence), (alice(1), Mode::Read, first.first));
    assert_eq!(holder.readers, [bob(1), alice(1), carol(1)]);
    assert!(holder.waiters.is_empty());
}

/// A process may ask to read while its writer waits: the two have places of their own.
pub(crate) async fn a_runtime_waits_to_read_and_to_write(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    let pushes = scene.pushes(bob(1)).await;
    scene.queued(bob(1)).await;
    waits_to_read(scene, bob(2)).await;
    let waiters = scene.holder().await.waiters;
    let waits: Vec<_> = waiters.iter().map(|waiter| (waiter.id, waiter.mode)).collect();
    assert_eq!(waits, [(bob(1), Mode::Write), (bob(2), Mode::Read)]);
    scene.release(alice(1), fence).await;
    let (id, granted, _) = pushes.grant().await;
    assert_eq!((id, granted.contended), (bob(2), true), "after a writer, readers");
    scene.release(bob(2), granted.first).await;
    assert_eq!(pushes.grant().await.0, bob(1));
}

/// The last reader that leaves lets the writer in; a late copy of its release ends nobody else.
pub(crate) async fn the_last_reader_lets_a_writer_in(scene: &Scene) {
    let fence = reads(scene, alice(1)).await.first;
    reads(scene, bob(1)).await;
    let pushes = scene.pushes(carol(1)).await;
    scene.queued(carol(1)).await;
    assert_eq!(scene.release(alice(1), fence).await, ReleaseAnswer::Released);
    assert_eq!(scene.holder().await.readers, [bob(1)]);
    assert_eq!(scene.release(alice(1), fence).await, ReleaseAnswer::Gone);
    assert_eq!(scene.release(bob(1), fence).await, ReleaseAnswer::Released);
    let (id, granted, _) = pushes.grant().await;
    assert_eq!(id, carol(1));
    assert!(granted.first > fence);
    assert_eq!(scene.release(bob(1), fence).await, ReleaseAnswer::Gone);
    assert_eq!(scene.holder().await.id, carol(1));
}

/// While a writer waits nobody joins, also not by a try; and a try to write passes no reader.
pub(crate) async fn nobody_joins_past_a_writer_who_waits(scene: &Scene) {
    reads(scene, alice(1)).await;
    assert!(matches!(scene.acquire(bob(1)).await, AcquireAnswer::Busy { .. }));
    reads(scene, bob(2)).await;
    scene.queued(carol(1)).await;
    waits_to_read(scene, carol(2)).await;
    assert!(matches!(try_to_read(scene, carol(3)).await, AcquireAnswer::Busy { .. }));
    assert_eq!(scene.holder().await.readers, [bob(2), alice(1)]);
}

/// After a writer all readers are granted, wherever they stand; after them the first writer.
pub(crate) async fn readers_and_writers_take_turns(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    let [of_alice, of_bob, of_carol] =
        [scene.pushes(alice(1)).await, scene.pushes(bob(1)).await, scene.pushes(carol(1)).await];
    scene.queued(bob(1)).await;
    waits_to_read(scene, carol(2)).await;
    scene.queued(carol(1)).await;
    waits_to_read(scene, alice(2)).await;
    scene.release(alice(1), fence).await;
    let ((one, first, _), (other, second, _)) = (of_carol.grant().await, of_alice.grant().await);
    assert_eq!((one, other), (carol(2), alice(2)));
    assert_eq!((first.first, first.last), (second.first, second.last));
    assert!(first.first > fence && first.contended && second.contended);
    assert_eq!(scene.waiting().await, [bob(1), carol(1)]);
    waits_to_read(scene, bob(2)).await;
    for id in [carol(2), alice(2)] {
        assert_eq!(scene.release(id, first.first).await, ReleaseAnswer::Released);
    }
    let (id, granted, _) = of_bob.grant().await;
    assert_eq!(id, bob(1));
    scene.release(bob(1), granted.first).await;
    let (id, last, _) = of_bob.grant().await;
    assert_eq!(id, bob(2));
    assert!(last.first > granted.last);
}

/// A writer whose lease expires is followed by the readers, too, one of whom asks.
pub(crate) async fn readers_follow_a_writer_that_died(scene: &Scene) {
    scene.granted(alice(1)).await;
    let pushes = scene.pushes(bob(2)).await;
    scene.pass(secs(30)).await;
    waits_to_read(scene, bob(2)).await;
    scene.queued(carol(1)).await;
    scene.pass(secs(31)).await;
    let granted = reads(scene, carol(2)).await;
    let (id, told, _) = pushes.grant().await;
    assert_eq!((id, told.first), (bob(2), granted.first));
    assert_eq!(scene.holder().await.readers, [bob(2), carol(2)]);
    assert_eq!(scene.waiting().await, [carol(1)]);
}

/// A try that gets the lock beside an older place of its runtime counts those who wait behind them, also a dead one.
pub(crate) async fn a_try_beside_its_older_place_leaves_the_others(scene: &Scene) {
    scene.granted(bob(1)).await;
    scene.pass(secs(15)).await;
    waits_to_read(scene, alice(1)).await;
    waits_to_read(scene, carol(1)).await;
    scene.pass(secs(15)).await;
    waits_to_read(scene, alice(1)).await;
    scene.pass(secs(31)).await;
    let answer = try_to_read(scene, alice(2)).await;
    let AcquireAnswer::Granted(granted) = answer else { panic!("{answer:?}") };
    assert!(granted.contended, "a place is left, of one that may come back");
    assert_eq!(scene.holder().await.readers, [alice(1), alice(2)]);
    assert_eq!(reads(scene, carol(1)).await.first, granted.first);
}

/// A reader that died delays a writer until its part ends, whatever the others do; nobody renews for it.
pub(crate) async fn a_dead_reader_ends_with_its_ttl(scene: &Scene) {
    let fence = reads(scene, alice(1)).await.first;
    reads(scene, bob(1)).await;
    let pushes = scene.pushes(carol(1)).await;
    scene.pass(secs(30)).await;
    scene.renew(bob(1), fence).await;
    scene.queued(carol(1)).await;
    scene.pass(secs(31)).await;
    assert_eq!(scene.holder().await.readers, [bob(1)], "the one that opened it is gone");
    assert_eq!(scene.renew(alice(1), fence).await, RenewAnswer::Gone);
    assert_eq!(scene.release(bob(1), fence).await, ReleaseAnswer::Released);
    assert_eq!(pushes.grant().await.0, carol(1));
}

/// A late renewal or release of readers who are gone touches neither a writer nor other readers.
pub(crate) async fn what_is_late_changes_nothing_for_later_readers(scene: &Scene) {
    let old = reads(scene, alice(1)).await.first;
    scene.release(alice(1), old).await;
    let fence = reads(scene, bob(1)).await.first;
    assert!(fence > old, "each time under a greater fence");
    reads(scene, alice(2)).await;
    let before = scene.snapshot().await;
    assert_eq!(scene.renew(alice(1), old).await, RenewAnswer::Gone);
    assert_eq!(scene.renew(alice(1), fence).await, RenewAnswer::Gone);
    assert_eq!(scene.renew(alice(2), old).await, RenewAnswer::Gone);
    assert_eq!(scene.release(alice(2), old).await, ReleaseAnswer::Gone);
    scene.assert_same(&before, &scene.snapshot().await, "late commands");
}

/// Nobody joins readers of whom nothing is known: that they left would not be seen.
pub(crate) async fn nobody_joins_readers_who_were_lost(scene: &Scene) {
    let fence = reads(scene, alice(1)).await.first;
    scene.subject().lose_part(scene.name(), Part::Readers).await;
    assert_eq!(scene.renew(alice(1), fence).await, RenewAnswer::Gone);
    waits_to_read(scene, bob(1)).await;
    scene.pass(secs(30)).await;
    waits_to_read(scene, bob(1)).await;
    scene.pass(secs(31)).await;
    assert!(reads(scene, bob(1)).await.first > fence);
}

/// Who has seen a greater fence does not join older readers, and bars others from it.
pub(crate) async fn nobody_joins_under_a_fence_below_what_it_has_seen(scene: &Scene) {
    let fence = reads(scene, alice(1)).await.first;
    let seen = Fence::try_from(fence.get() + 1).ok();
    let answer = seeing(scene, bob(1), seen).await;
    assert!(matches!(answer, AcquireAnswer::Queued(_)), "{answer:?}");
    waits_to_read(scene, carol(1)).await;
    let pushes = scene.pushes(carol(1)).await;
    scene.release(alice(1), fence).await;
    let (_, granted, _) = pushes.grant().await;
    assert!(Some(granted.first) > seen);
    assert_eq!(scene.holder().await.readers, [bob(1), carol(1)]);
}

/// A writer that withdraws lets in the readers who queued behind it, but not those behind another.
pub(crate) async fn a_writer_that_withdraws_lets_readers_in(scene: &Scene) {
    let fence = reads(scene, alice(1)).await.first;
    let pushes = scene.pushes(carol(2)).await;
    scene.queued(bob(1)).await;
    waits_to_read(scene, carol(2)).await;
    scene.queued(carol(1)).await;
    waits_to_read(scene, bob(2)).await;
    assert!(!scene.withdraw(bob(1)).await);
    let (id, granted, _) = pushes.grant().await;
    assert_eq!((id, granted.first, granted.contended), (carol(2), fence, true));
    assert_eq!(granted.remaining, Scene::WINDOW);
    assert_eq!(scene.holder().await.readers, [alice(1), carol(2)]);
    assert_eq!(scene.waiting().await, [carol(1), bob(2)]);
}

/// A reader that withdraws leaves; the last one lets the writer in.
pub(crate) async fn a_reader_that_withdraws_leaves(scene: &Scene) {
    reads(scene, alice(1)).await;
    reads(scene, bob(1)).await;
    let pushes = scene.pushes(carol(1)).await;
    scene.queued(carol(1)).await;
    assert!(scene.withdraw(alice(1)).await);
    assert_eq!(read(scene, alice(1)).await, AcquireAnswer::Withdrawn);
    assert!(scene.withdraw(bob(1)).await);
    assert_eq!(pushes.grant().await.0, carol(1));
}

/// Each reader is told that a writer waits: when it queues, and with each of its heartbeats.
pub(crate) async fn readers_are_told_that_a_writer_waits(scene: &Scene) {
    let fence = reads(scene, alice(1)).await.first;
    reads(scene, bob(1)).await;
    let logs = [scene.pushes(alice(1)).await, scene.pushes(bob(1)).await];
    for number in [1, 2] {
        scene.queued_with(carol(1), Scene::beat(number)).await;
        for (id, log) in [alice(1), bob(1)].into_iter().zip(&logs) {
            let name = scene.name().clone();
            assert_eq!(log.told().await, Push::Wanted { name, id, fence });
        }
    }
}

/// An operator ends the lease of all readers at once; each is told, and the writer is next.
pub(crate) async fn a_forced_release_ends_all_readers(scene: &Scene) {
    let fence = reads(scene, alice(1)).await.first;
    reads(scene, bob(1)).await;
    let logs = [scene.pushes(alice(1)).await, scene.pushes(bob(1)).await];
    let of_carol = scene.pushes(carol(1)).await;
    scene.queued(carol(1)).await;
    let ended = scene.force_release(alice(1), fence).await;
    assert!(matches!(ended, ForceReleaseAnswer::Ended { fence: Some(above) } if above > fence));
    for (id, log) in [alice(1), bob(1)].into_iter().zip(&logs) {
        let name = scene.name().clone();
        assert_eq!(log.told().await, Push::Wanted { name, id, fence });
        assert_eq!(log.force_released().await, (id, fence));
    }
    assert_eq!(of_carol.grant().await.0, carol(1));
    assert_eq!(scene.renew(bob(1), fence).await, RenewAnswer::Gone);
}

/// A reader that leaves joins the others again with its next acquisition, unless a writer waits.
pub(crate) async fn the_next_of_a_reader_joins_or_queues(scene: &Scene) {
    let fence = reads(scene, alice(1)).await.first;
    reads(scene, bob(1)).await;
    let next = |id| scene.calls().to(Mode::Read).waiter(id, ttl(60), None, Scene::beat(7));
    let queue = async |id, next| {
        scene.calls().release_and_queue(id, fence, None, &next).await.expect("a release")
    };
    let answer = queue(alice(1), next(alice(2))).await;
    let ReleaseAnswer::NextGranted(granted) = answer else { panic!("{answer:?}") };
    assert_eq!(granted.first, fence);
    scene.queued(carol(1)).await;
    let answer = queue(alice(2), next(alice(3))).await;
    assert!(matches!(answer, ReleaseAnswer::NextQueued(place) if place.ahead == 1), "{answer:?}");
    let answer = queue(bob(1), next(bob(2))).await;
    assert!(matches!(answer, ReleaseAnswer::NextQueued(_)), "{answer:?}");
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.mode), (carol(1), Mode::Write));
    assert_eq!(scene.waiting().await, [alice(3), bob(2)]);
}
