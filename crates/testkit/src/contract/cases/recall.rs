//! Recalling: the holder of a lock that it may keep idle is told when another runtime waits.

use leasehold_core::{
    AcquisitionId, Mode, Replication, RuntimeLabel,
    store::{Acquire, AcquireAnswer, Ask, Granted, Push, ReleaseAnswer},
};

use crate::contract::{Calls, PushLog, Scene, alice, bob, carol, secs, ttl};

/// Acquires for 60 s, and may keep the lock idle.
async fn keeping(scene: &Scene, id: AcquisitionId) -> Granted {
    match scene.calls().keeping(true).acquire(id, ttl(60), None).await {
        Ok(AcquireAnswer::Granted(granted)) => granted,
        other => panic!("{id} expected a grant and got {other:?}"),
    }
}

/// The same of a lock that was held before, so that the first token, the last one and the time of
/// the grant differ.
async fn keeping_a_block(scene: &Scene, id: AcquisitionId) -> Granted {
    let before = scene.granted(carol(1)).await;
    scene.release(carol(1), before.first).await;
    scene.tokens_pass(2).await;
    let granted = keeping(scene, id).await;
    assert!(granted.first < granted.last, "{granted:?}");
    granted
}

/// Waits for 60 s, and may keep the lock idle or not; the places before it.
async fn queued(scene: &Scene, id: AcquisitionId, keeps: bool) -> u64 {
    match scene.calls().keeping(keeps).wait(id, ttl(60), None, Scene::beat(1)).await {
        Ok(AcquireAnswer::Queued(place)) => place.ahead,
        other => panic!("{id} expected a place and got {other:?}"),
    }
}

/// Sends a heartbeat in a batch; the places before it.
async fn beat(scene: &Scene, id: AcquisitionId, keeps: bool) -> u64 {
    let waiter = scene.calls().keeping(keeps).waiter(id, ttl(60), None, Scene::beat(2));
    match scene.heartbeat(&[waiter]).await[..] {
        [AcquireAnswer::Queued(place)] => place.ahead,
        ref other => panic!("{id} expected a place and got {other:?}"),
    }
}

/// Ends the lease by force and expects that its runtime was told nothing else before.
async fn told_nothing(scene: &Scene, pushes: &PushLog, id: AcquisitionId, granted: &Granted) {
    scene.force_release(id, granted.first).await;
    assert_eq!(pushes.force_released().await, (id, granted.first));
}

/// The holder is told at once: which lock, with the acquisition and the first token of its grant.
pub(crate) async fn a_holder_that_keeps_is_told_who_is_wanted(scene: &Scene) {
    let pushes = scene.pushes(alice(1)).await;
    let mut before = Push::Listening;
    for (number, name) in (1..).zip(["orders/42", "a}b", "größe/Ω 1 2", " "]) {
        let calls = scene.calls().about(name).keeping(true);
        let id = alice(number);
        // A wait on a free lock keeps it, too.
        let fence = match calls.wait(id, ttl(60), None, Scene::beat(1)).await {
            Ok(AcquireAnswer::Granted(granted)) => granted.first,
            other => panic!("{other:?}"),
        };
        calls.wait(bob(1), ttl(60), None, Scene::beat(1)).await.expect("wait");
        let name = calls.name().clone();
        before = pushes.told_after(&before).await;
        assert_eq!(before, Push::Wanted { name, id, fence });
    }
}

/// Every heartbeat of the head tells the holder again, whatever has become of its lease since.
pub(crate) async fn each_heartbeat_of_the_head_tells_again(scene: &Scene) {
    let pushes = scene.pushes(alice(1)).await;
    let (id, granted) = (alice(2), keeping_a_block(scene, alice(2)).await);
    let wanted = (id, granted.first);
    assert_eq!(queued(scene, bob(1), false).await, 0);
    assert_eq!(pushes.wanted().await, wanted);
    for _ in 0..2 {
        assert_eq!(beat(scene, bob(1), false).await, 0);
        assert_eq!(pushes.wanted().await, wanted);
        assert_eq!(queued(scene, bob(1), false).await, 0);
        assert_eq!(pushes.wanted().await, wanted);
    }
    scene.renew(id, granted.first).await;
    assert_eq!(beat(scene, bob(1), false).await, 0);
    assert_eq!(pushes.wanted().await, wanted);
    // A lock with nested holds takes other ways through the script.
    scene.hold(id, granted.first, (2, 1)).await;
    assert_eq!(beat(scene, bob(1), false).await, 0);
    assert_eq!(pushes.wanted().await, wanted);
    told_nothing(scene, &pushes, id, &granted).await;
}

/// Who stands behind others tells the holder nothing, until it is the first.
pub(crate) async fn those_behind_the_head_tell_nothing(scene: &Scene) {
    let pushes = scene.pushes(alice(1)).await;
    let granted = keeping(scene, alice(1)).await;
    queued(scene, bob(1), false).await;
    assert_eq!(pushes.wanted().await, (alice(1), granted.first));
    assert_eq!(queued(scene, carol(1), true).await, 1);
    assert_eq!(queued(scene, carol(1), true).await, 1);
    assert_eq!(beat(scene, carol(1), true).await, 1);
    scene.hold(alice(1), granted.first, (2, 1)).await;
    assert_eq!(beat(scene, carol(1), true).await, 1);
    scene.withdraw(bob(1)).await;
    assert_eq!(beat(scene, carol(1), true).await, 0);
    assert_eq!(pushes.wanted().await, (alice(1), granted.first));
    told_nothing(scene, &pushes, alice(1), &granted).await;
}

/// A holder that does not keep is told nothing, even by those who would.
pub(crate) async fn a_holder_that_does_not_keep_is_told_nothing(scene: &Scene) {
    let pushes = scene.pushes(alice(1)).await;
    let granted = scene.granted(alice(1)).await;
    assert!(!scene.holder().await.keeps);
    for keeps in [true, false] {
        assert_eq!(queued(scene, bob(1), keeps).await, 0);
        assert_eq!(beat(scene, bob(1), keeps).await, 0);
    }
    scene.hold(alice(1), granted.first, (2, 1)).await;
    assert_eq!(beat(scene, bob(1), true).await, 0);
    told_nothing(scene, &pushes, alice(1), &granted).await;
}

/// A lock that is kept closed cannot be passed on, so that nobody is told.
pub(crate) async fn a_lock_kept_closed_is_not_recalled(scene: &Scene) {
    let pushes = scene.pushes(alice(1)).await;
    let granted = keeping(scene, alice(1)).await;
    scene.keep(alice(1), granted.first, secs(90)).await;
    assert_eq!(queued(scene, bob(1), false).await, 0);
    assert_eq!(beat(scene, bob(1), false).await, 0);
    let answer = scene.acquire(carol(1)).await;
    assert!(matches!(answer, AcquireAnswer::Busy { keeps: false, .. }), "{answer:?}");
    let holder = scene.holder().await;
    assert!(holder.kept && !holder.keeps, "{holder:?}");
    told_nothing(scene, &pushes, alice(1), &granted).await;
}

/// A try is answered whether the holder keeps, and tells it nothing.
pub(crate) async fn a_try_learns_whether_the_holder_keeps(scene: &Scene) {
    let pushes = scene.pushes(alice(1)).await;
    let granted = keeping(scene, alice(1)).await;
    let answer = scene.acquire(bob(1)).await;
    assert!(matches!(answer, AcquireAnswer::Busy { keeps: true, .. }), "{answer:?}");
    told_nothing(scene, &pushes, alice(1), &granted).await;
    scene.granted(alice(2)).await;
    let answer = scene.calls().keeping(true).acquire(bob(2), ttl(60), None).await;
    assert!(matches!(answer, Ok(AcquireAnswer::Busy { keeps: false, .. })), "{answer:?}");
}

/// A try that finds an expired lease learns it of the waiter who gets the lock.
pub(crate) async fn a_try_learns_whether_the_next_holder_keeps(scene: &Scene) {
    for (number, keeps) in (1..).zip([true, false]) {
        let calls = scene.calls().about(&format!("expired/{number}"));
        let (holder, waiter) = (calls.clone().keeping(!keeps), calls.clone().keeping(keeps));
        holder.acquire(alice(number), ttl(20), None).await.expect("acquire");
        waiter.wait(bob(number), ttl(60), None, Scene::beat(1)).await.expect("wait");
        scene.pass(secs(20)).await;
        match calls.acquire(carol(number), ttl(60), None).await {
            Ok(AcquireAnswer::Busy { keeps: told, .. }) => assert_eq!(told, keeps),
            other => panic!("{other:?}"),
        }
    }
}

/// A grant out of the queue keeps if the last heartbeat of its place said so, and not otherwise,
/// whatever the last holder did.
pub(crate) async fn a_waiter_keeps_if_its_place_says_so(scene: &Scene) {
    let mut holder = (alice(1), scene.granted(alice(1)).await.first);
    for (number, (is_nested, first, last)) in (2..).zip([
        (false, true, true),
        (true, false, false),
        (false, false, true),
        (true, true, false),
        (true, true, true),
        (false, false, false),
        (true, false, true),
        (false, true, false),
    ]) {
        let next = if number % 2 == 0 { bob(number) } else { alice(number) };
        if is_nested {
            // The release takes another way through the script.
            scene.hold(holder.0, holder.1, (2, 1)).await;
        }
        queued(scene, next, first).await;
        beat(scene, next, last).await;
        scene.release(holder.0, holder.1).await;
        let found = scene.holder().await;
        assert_eq!((found.id, found.keeps), (next, last), "number {number}");
        holder = (found.id, found.fence);
    }
}

/// A next acquisition keeps if it says so, granted at once or out of the queue.
pub(crate) async fn a_next_keeps_if_it_says_so(scene: &Scene) {
    let mut fence = keeping(scene, alice(1)).await.first;
    for (number, keeps) in (1..).zip([false, true, false]) {
        let next =
            scene.calls().keeping(keeps).waiter(alice(number + 1), ttl(60), None, Scene::beat(7));
        let released = scene.calls().release_and_queue(alice(number), fence, None, &next).await;
        let Ok(ReleaseAnswer::NextGranted(granted)) = released else { panic!("{released:?}") };
        assert_eq!(scene.holder().await.keeps, keeps);
        fence = granted.first;
    }
    for (number, keeps) in (4..).zip([false, true, false]) {
        queued(scene, bob(number), !keeps).await;
        let next =
            scene.calls().keeping(keeps).waiter(alice(number + 1), ttl(60), None, Scene::beat(7));
        let released = scene.calls().release_and_queue(alice(number), fence, None, &next).await;
        assert!(matches!(released, Ok(ReleaseAnswer::NextQueued(_))), "{released:?}");
        let between = scene.holder().await;
        assert_eq!((between.id, between.keeps), (bob(number), !keeps));
        scene.release(between.id, between.fence).await;
        let found = scene.holder().await;
        assert_eq!((found.id, found.keeps), (alice(number + 1), keeps));
        fence = found.fence;
    }
}

/// In a batch, each acquisition says for itself whether it keeps.
pub(crate) async fn each_of_a_batch_says_whether_it_keeps(scene: &Scene) {
    let names: Vec<_> = (0..6).map(|number| format!("batch/{number}")).collect();
    let calls: Vec<_> = names.iter().map(|name| scene.calls().about(name)).collect();
    let keeps = |number: usize| number % 3 == 1;
    let waiter = |(number, calls): (usize, &Calls)| {
        calls.clone().keeping(keeps(number)).waiter(alice(1), ttl(60), None, Scene::beat(1))
    };
    let batch: Vec<_> = calls.iter().enumerate().map(waiter).collect();
    scene.heartbeat(&batch).await;
    for (number, calls) in calls.iter().enumerate() {
        match calls.acquire(bob(1), ttl(60), None).await {
            Ok(AcquireAnswer::Busy { keeps: told, .. }) => assert_eq!(told, keeps(number)),
            other => panic!("{other:?}"),
        }
    }
}

/// A look says who keeps, and shows labels as the runtimes gave them.
pub(crate) async fn a_look_says_who_keeps(scene: &Scene) {
    keeping(scene, alice(1)).await;
    queued(scene, bob(1), true).await;
    queued(scene, carol(1), false).await;
    let holder = scene.holder().await;
    assert!(holder.keeps);
    assert_eq!(holder.label, Calls::LABEL);
    let labels: Vec<_> = holder.waiters.iter().map(|waiter| &*waiter.label).collect();
    assert_eq!(labels, [Calls::LABEL; 2]);
}

/// No label makes a lock kept that is not to be.
pub(crate) async fn a_label_does_not_keep(scene: &Scene) {
    let label = RuntimeLabel::new("~host/1/tilde");
    let (name, id, ttl, watermark) = (scene.name().clone(), alice(1), ttl(60), None);
    let (keeps, wait, acks) = (false, None, Replication::NONE);
    let mode = Mode::Write;
    let command =
        Acquire { name, id, mode, ttl, watermark, label: label.clone(), keeps, wait, acks };
    let deadline = scene.subject().deadline();
    scene.subject().store().ask(command, deadline).await.expect("acquire");
    let holder = scene.holder().await;
    assert!(!holder.keeps);
    assert_eq!(holder.label, label.as_str());
    let answer = scene.acquire(bob(1)).await;
    assert!(matches!(answer, AcquireAnswer::Busy { keeps: false, .. }), "{answer:?}");
}
