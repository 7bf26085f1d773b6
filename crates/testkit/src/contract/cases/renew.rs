//! Renewing: many leases in one command, each answered on its own.

use leasehold_core::{
    LockName,
    store::{AcquireAnswer, RenewAnswer, Renewal},
};

use crate::contract::{Scene, alice, bob, secs, ttl};

/// A renewal extends the lease to its ttl, unless there is more left.
pub(crate) async fn a_renewal_extends_to_the_greater(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.pass(secs(30)).await;
    let RenewAnswer::Renewed { remaining } = scene.renew(alice(1), fence).await else {
        panic!("the lease stands");
    };
    scene.assert_left(remaining, secs(60));
    let RenewAnswer::Renewed { remaining } = scene.renew_for(alice(1), fence, ttl(1)).await else {
        panic!("the lease stands");
    };
    scene.assert_left(remaining, secs(60));
    scene.assert_left(scene.holder().await.remaining, secs(60));
}

/// A batch answers lease by lease, in order; one that is gone spoils no other.
pub(crate) async fn a_batch_answers_each_lease(scene: &Scene) {
    let old = scene.granted(alice(1)).await.first;
    scene.release(alice(1), old).await;
    let fence = scene.granted(alice(2)).await.first;
    let elsewhere = LockName::new("nobody holds this").expect("a name");
    let of = |id, fence| scene.calls().renewal(id, fence, ttl(90));
    let batch = [
        of(alice(1), old),
        of(alice(2), fence),
        of(alice(2), old),
        Renewal { name: elsewhere, ..of(alice(2), fence) },
        of(bob(2), fence),
        of(alice(2), fence),
    ];
    let is_renewed = |answer: &RenewAnswer| matches!(answer, RenewAnswer::Renewed { .. });
    let answers: Vec<_> = scene.renew_all(&batch).await.iter().map(is_renewed).collect();
    assert_eq!(answers, [false, true, false, false, false, true]);
    assert_eq!(scene.renew_all(&[]).await, []);
    assert_eq!(scene.holder().await.holds, 1);
}

/// A renewal that names another acquisition or fence changes nothing.
pub(crate) async fn a_renewal_needs_id_and_fence(scene: &Scene) {
    let old = scene.granted(alice(1)).await.first;
    scene.release(alice(1), old).await;
    let fence = scene.granted(alice(2)).await.first;
    let before = scene.snapshot().await;
    for (id, fence) in [(alice(2), old), (alice(1), fence), (bob(2), fence), (alice(1), old)] {
        assert_eq!(scene.renew_for(id, fence, ttl(600)).await, RenewAnswer::Gone);
        scene.assert_same(&before, &scene.snapshot().await, "a renewal of another lease");
    }
}

/// A renewal of a lease that ran out or was released brings nothing back.
pub(crate) async fn a_renewal_never_recreates(scene: &Scene) {
    let fence = scene.granted(alice(1)).await.first;
    scene.pass(secs(61)).await;
    assert_eq!(scene.renew(alice(1), fence).await, RenewAnswer::Gone);
    assert_eq!(scene.free().await, Some(fence));
    let granted = scene.granted(alice(2)).await;
    scene.release(alice(2), granted.first).await;
    assert_eq!(scene.renew(alice(2), granted.first).await, RenewAnswer::Gone);
    assert_eq!(scene.free().await, Some(granted.last));
}

/// A batch of 128 leases is renewed as one.
pub(crate) async fn a_full_batch_is_one_command(scene: &Scene) {
    let mut batch = Vec::new();
    for number in 0..128 {
        let calls = scene.calls().about(&format!("batch/{number}"));
        let answer = calls.acquire(alice(number), ttl(60), None).await.expect("acquire");
        let AcquireAnswer::Granted(granted) = answer else { panic!("{answer:?}") };
        batch.push(calls.renewal(alice(number), granted.first, ttl(600)));
    }
    let answers = scene.renew_all(&batch).await;
    assert_eq!(answers.len(), 128);
    for answer in answers {
        let RenewAnswer::Renewed { remaining } = answer else { panic!("{answer:?}") };
        scene.assert_left(remaining, secs(600));
    }
}
