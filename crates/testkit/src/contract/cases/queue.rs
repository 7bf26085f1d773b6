//! The queue: who waits, in which order, and for how long without a sign of life (P7, P8).

use leasehold_core::store::{AcquireAnswer, Heartbeat, Inspection};

use crate::contract::{Calls, Scene, alice, bob, carol, secs, ttl};

/// A waiter is told what is left of the lease and how many are before it.
pub(crate) async fn a_waiter_is_told_its_place(scene: &Scene) {
    scene.granted(alice(1)).await;
    for (id, ahead) in [(bob(1), 0), (carol(1), 1), (alice(2), 2), (bob(1), 0), (carol(1), 1)] {
        let place = scene.queued(id).await;
        assert_eq!(place.ahead, ahead, "{id}");
        scene.assert_left(place.remaining, secs(60));
    }
    assert_eq!(scene.waiting().await, [bob(1), carol(1), alice(2)]);
}

/// Waiters are served in the order in which they came, whatever they ask meanwhile.
pub(crate) async fn waiters_are_served_in_order(scene: &Scene) {
    let mut holder = (alice(1), scene.granted(alice(1)).await.first);
    for id in [carol(1), bob(1), alice(2)] {
        scene.queued(id).await;
    }
    scene.queued(alice(2)).await;
    for id in [carol(1), bob(1), alice(2)] {
        scene.release(holder.0, holder.1).await;
        let found = scene.holder().await;
        assert_eq!(found.id, id);
        assert!(found.fence > holder.1);
        holder = (id, found.fence);
    }
    scene.release(holder.0, holder.1).await;
    scene.free().await;
}

/// A wait on a free lock is granted for the whole ttl, and its repeat finds the same grant.
pub(crate) async fn a_wait_on_a_free_lock_is_a_grant(scene: &Scene) {
    let granted = scene.wait_granted(alice(1)).await;
    assert_eq!(granted.remaining, Scene::TTL);
    assert!(!granted.contended);
    let again = scene.wait_granted(alice(1)).await;
    assert_eq!((again.first, again.last), (granted.first, granted.last));
    scene.assert_left(again.remaining, Scene::TTL);
    assert!(!again.contended);
    scene.queued(bob(1)).await;
    assert!(scene.wait_granted(alice(1)).await.contended);
    assert!(scene.granted(alice(1)).await.contended);
}

/// A runtime has one place: a newer acquisition queues at the tail, and the older one is gone.
pub(crate) async fn a_runtime_has_one_place(scene: &Scene) {
    scene.granted(alice(1)).await;
    scene.queued(bob(1)).await;
    scene.queued(carol(1)).await;
    assert_eq!(scene.queued(bob(2)).await.ahead, 1);
    assert_eq!(scene.waiting().await, [carol(1), bob(2)]);
}

/// A late copy of an older acquisition finds the newer one's place, and changes nothing.
pub(crate) async fn a_late_copy_of_an_older_wait_is_ignored(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(2)).await;
    scene.queued(carol(1)).await;
    let before = scene.snapshot().await;
    assert_eq!(scene.wait(bob(1)).await, AcquireAnswer::Withdrawn);
    assert_eq!(scene.acquire(bob(1)).await, AcquireAnswer::Withdrawn);
    scene.assert_same(&before, &scene.snapshot().await, "a late copy");
    scene.release(alice(1), fence).await;
    let holder = scene.holder().await;
    assert_eq!(holder.id, bob(2));
    // The numbers are compared as numbers: 9 comes before 10.
    scene.queued(alice(10)).await;
    assert_eq!(scene.wait(alice(9)).await, AcquireAnswer::Withdrawn);
    assert_eq!(scene.waiting().await, [carol(1), alice(10)]);
}

/// A place lives for the claim window from its last sign of life; then it is passed over.
pub(crate) async fn a_dead_waiter_is_passed_over(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.pass(secs(15)).await;
    scene.queued(carol(1)).await;
    scene.renew_for(alice(1), fence, ttl(600)).await;
    scene.pass(secs(26)).await;
    // Bob was silent for 41 s, Carol for 26 s.
    assert_eq!(scene.waiting().await, [carol(1)]);
    assert_eq!(scene.queued(carol(1)).await.ahead, 1, "dead places count until they are met");
    scene.release(alice(1), fence).await;
    assert_eq!(scene.holder().await.id, carol(1));
    assert!(scene.waiting().await.is_empty());
}

/// A sign of life keeps the place, and a place that lapsed but was not met yet comes back to life.
pub(crate) async fn a_sign_of_life_keeps_the_place(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.renew_for(alice(1), fence, ttl(600)).await;
    scene.queued(bob(1)).await;
    scene.queued(carol(1)).await;
    for number in 2..6 {
        scene.pass(secs(15)).await;
        assert_eq!(scene.queued_with(bob(1), Scene::beat(number)).await.ahead, 0);
        assert_eq!(scene.queued_with(carol(1), Scene::beat(number)).await.ahead, 1);
    }
    assert_eq!(scene.waiting().await, [bob(1), carol(1)]);
    scene.pass(secs(45)).await;
    assert!(scene.waiting().await.is_empty());
    assert_eq!(scene.queued_with(bob(1), Scene::beat(6)).await.ahead, 0);
    assert_eq!(scene.waiting().await, [bob(1)]);
    scene.release(alice(1), fence).await;
    assert_eq!(scene.holder().await.id, bob(1));
}

/// A lease that ran out goes to the head of the queue, no matter who asks: the head itself, another
/// waiter, a newcomer, or one who does not wait.
pub(crate) async fn an_expired_lease_goes_to_the_head(scene: &Scene) {
    let short = ttl(20);
    let pushes = scene.pushes(bob(1)).await;
    for (number, who) in (1..).zip(["head", "waiter", "newcomer", "try"]) {
        let name = format!("expired/{number}");
        let calls = scene.calls().about(&name);
        let (first, second, third) = (bob(number), carol(number), alice(100 + number));
        calls.acquire(alice(number), short, None).await.expect("acquire");
        calls.wait(first, ttl(60), None, Scene::beat(1)).await.expect("wait");
        calls.wait(second, ttl(60), None, Scene::beat(1)).await.expect("wait");
        scene.pass(secs(20)).await;
        let answer = match who {
            "head" => calls.wait(first, ttl(60), None, Scene::beat(2)).await,
            "waiter" => calls.wait(second, ttl(60), None, Scene::beat(2)).await,
            "newcomer" => calls.wait(third, ttl(60), None, Scene::beat(1)).await,
            _ => calls.acquire(third, ttl(60), None).await,
        };
        match (who, answer.expect("an answer")) {
            ("head", AcquireAnswer::Granted(granted)) => {
                assert_eq!(granted.remaining, Scene::WINDOW);
                assert!(granted.contended);
                continue;
            }
            ("waiter", AcquireAnswer::Queued(place)) => {
                assert_eq!(place.ahead, 0);
                scene.assert_left(place.remaining, Scene::WINDOW);
            }
            ("newcomer", AcquireAnswer::Queued(place)) => {
                assert_eq!(place.ahead, 1);
                scene.assert_left(place.remaining, Scene::WINDOW);
            }
            ("try", AcquireAnswer::Busy { remaining, .. }) => {
                scene.assert_left(remaining, Scene::WINDOW);
            }
            (_, answer) => panic!("{who}: {answer:?}"),
        }
        let (id, granted, heartbeat) = pushes.grant().await;
        assert_eq!((id, heartbeat, granted.remaining), (first, 1, Scene::WINDOW), "{who}");
        assert!(granted.contended, "{who}");
    }
}

/// A lock that is free with nobody alive in its queue is anybody's, for the whole ttl.
pub(crate) async fn a_queue_of_the_dead_holds_nobody_up(scene: &Scene) {
    scene.granted(alice(1)).await;
    scene.queued(bob(1)).await;
    scene.pass(secs(61)).await;
    let granted = scene.granted(carol(1)).await;
    assert_eq!(granted.remaining, Scene::TTL);
    assert!(!granted.contended);
}

/// One who does not wait passes no live waiter, not even one of its own runtime.
pub(crate) async fn a_try_passes_no_live_waiter(scene: &Scene) {
    let short = ttl(20);
    scene.calls().acquire(alice(1), short, None).await.expect("acquire");
    scene.queued(bob(1)).await;
    scene.pass(secs(20)).await;
    let pushes = scene.pushes(bob(1)).await;
    scene.assert_left(scene.busy(bob(2)).await, Scene::WINDOW);
    let (id, granted, _) = pushes.grant().await;
    assert_eq!(id, bob(1));
    let holder = scene.holder().await;
    assert_eq!((holder.id, holder.fence), (bob(1), granted.first));
    // The newcomer left no place.
    assert!(holder.waiters.is_empty());
}

/// A kept lock is waited for like any other, and goes to the head when its time is over.
pub(crate) async fn a_kept_lock_is_waited_for(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.queued(bob(1)).await;
    scene.keep(alice(1), fence, secs(30)).await;
    scene.assert_left(scene.queued(bob(1)).await.remaining, secs(30));
    scene.assert_left(scene.queued(alice(1)).await.remaining, secs(30));
    scene.pass(secs(30)).await;
    scene.busy(carol(1)).await;
    assert_eq!(scene.holder().await.id, bob(1));
}

/// A claim window is at most the ttl.
pub(crate) async fn a_claim_window_is_at_most_the_ttl(scene: &Scene) {
    let pushes = scene.pushes(bob(1)).await;
    let fence = scene.granted(alice(1)).await.first;
    let endless = Heartbeat { number: 1, claim_window: secs(600) };
    scene.queued_with(bob(1), endless).await;
    scene.release(alice(1), fence).await;
    assert_eq!(pushes.grant().await.1.remaining, secs(60));
    scene.assert_left(scene.holder().await.remaining, secs(60));
}

/// A batch of heartbeats does what as many acquires that wait would do.
pub(crate) async fn a_batch_of_heartbeats_is_as_good_as_single_ones(scene: &Scene) {
    let names = ["batch/held", "batch/free", "batch/own", "batch/queue"];
    let mut outcomes = Vec::new();
    for in_batch in [true, false] {
        let calls: Vec<_> = names.iter().map(|name| scene.calls().about(name)).collect();
        for (name, id) in [(0, alice(1)), (2, bob(1)), (3, alice(1))] {
            calls[name].acquire(id, ttl(60), None).await.expect("acquire");
        }
        calls[3].wait(carol(1), ttl(60), None, Scene::beat(1)).await.expect("wait");
        let waiter = |calls: &Calls| calls.waiter(bob(1), ttl(60), None, Scene::beat(3));
        let batch: Vec<_> = calls.iter().map(waiter).collect();
        let answers = if in_batch {
            scene.heartbeat(&batch).await
        } else {
            let mut answers = Vec::new();
            for (calls, one) in calls.iter().zip(&batch) {
                let answer = calls.wait(one.id, one.ttl, one.watermark, one.heartbeat).await;
                answers.push(answer.expect("wait"));
            }
            answers
        };
        let mut left = Vec::new();
        for calls in &calls {
            let looked = calls.inspect().await.expect("inspect");
            let Inspection::Held(record) = looked else { panic!("{looked:?}") };
            let waiting: Vec<_> = record.waiters.iter().map(|waiter| waiter.id).collect();
            left.push((record.id, waiting));
        }
        outcomes.push((answers.iter().map(in_words).collect::<Vec<_>>(), left));
        scene.subject().lose_all().await;
    }
    assert_eq!(outcomes[0].0, ["queued 0", "granted", "granted", "queued 1"]);
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(scene.heartbeat(&[]).await.is_empty());
}

/// A batch of more than 128 heartbeats is answered in order.
pub(crate) async fn a_great_batch_is_answered_in_order(scene: &Scene) {
    let mut batch = Vec::new();
    for number in 0..300 {
        let calls = scene.calls().about(&format!("great/{number}"));
        if number % 3 == 0 {
            calls.acquire(alice(1), ttl(60), None).await.expect("acquire");
        }
        batch.push(calls.waiter(bob(number), ttl(60), None, Scene::beat(1)));
    }
    let answers = scene.heartbeat(&batch).await;
    assert_eq!(answers.len(), 300);
    for (number, answer) in answers.iter().enumerate() {
        let expected = if number % 3 == 0 { "queued 0" } else { "granted" };
        assert_eq!(in_words(answer), expected, "{number}");
    }
}

/// A place and what is known of it end by themselves when nobody comes back.
pub(crate) async fn a_queue_ends_by_itself(scene: &Scene) {
    scene.granted(alice(1)).await;
    scene.queued(bob(1)).await;
    scene.queued_with(carol(1), Heartbeat { number: 1, claim_window: secs(5) }).await;
    assert!(scene.subject().left_behind().await.is_empty());
}

fn in_words(answer: &AcquireAnswer) -> String {
    match answer {
        AcquireAnswer::Granted(_) => "granted".into(),
        AcquireAnswer::Busy { .. } => "busy".into(),
        AcquireAnswer::Queued(place) => format!("queued {}", place.ahead),
        AcquireAnswer::Withdrawn => "withdrawn".into(),
    }
}
