//! What somebody overwrote spoils only the answers that need it: only a server's keys can be
//! overwritten, so this is no part of the suite.

use leasehold_core::{
    FenceSettings, LockName, StoreErrorKind,
    store::{AcquireAnswer, ReleaseAnswer},
};
use leasehold_testkit::{
    LockText,
    contract::{RedisSubject, Scene, alice, bob, carol, secs, ttl},
};

/// The keys of a name, as the server has them.
fn keys(subject: &RedisSubject, name: &LockName) -> [String; 3] {
    let keys = subject.redis().keys();
    [keys.lease(name), keys.queue(name), keys.waiters(name)]
}

/// Puts a list in the place of a key.
fn overwrite(subject: &RedisSubject, key: &str) {
    subject.server().command(&["DEL", key]);
    subject.server().command(&["RPUSH", key, "somebody's"]);
    subject.server().command(&["PEXPIRE", key, "600000"]);
}

async fn scenes() -> (RedisSubject, Scene) {
    let subject = RedisSubject::new(FenceSettings::default()).await;
    let scene = Scene::new(Box::new(subject.clone()));
    (subject, scene)
}

#[tokio::test]
async fn a_spoiled_key_spoils_only_its_own_heartbeat() {
    let (subject, scene) = scenes().await;
    let mut batch = Vec::new();
    for number in 0..12 {
        let calls = scene.calls().about(&format!("corrupt/{number}"));
        if number % 2 == 0 {
            calls.acquire(alice(1), ttl(60), None).await.expect("acquire");
        }
        calls.wait(carol(1), ttl(60), None, Scene::beat(1)).await.expect("wait");
        batch.push(calls.waiter(bob(1), ttl(60), None, Scene::beat(1)));
    }
    // The lease of the first, the queue and the waiters of the next two that are held.
    let spoiled = [(0, 0), (2, 1), (4, 2)];
    for (number, key) in spoiled {
        overwrite(&subject, &keys(&subject, &batch[number].name)[key]);
    }
    let answers = scene.calls().heartbeat(&batch).await.expect("a batch is answered");
    for (number, answer) in answers.iter().enumerate() {
        if spoiled.iter().any(|(spoiled, _)| *spoiled == number) {
            let error = answer.as_ref().expect_err("a spoiled key");
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert_eq!(error.lock(), Some(&batch[number].name));
        } else {
            assert!(matches!(answer, Ok(AcquireAnswer::Queued(_))), "{number}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_lease_ends_whatever_became_of_its_queue() {
    for key in [1, 2] {
        let (subject, scene) = scenes().await;
        let fence = scene.granted(alice(1)).await.first;
        scene.queued(bob(1)).await;
        overwrite(&subject, &keys(&subject, scene.name())[key]);
        assert_eq!(scene.release(alice(1), fence).await, ReleaseAnswer::Released, "{key}");
        let [lease, ..] = keys(&subject, scene.name());
        let held = LockText::of(subject.server(), &lease).lease.is_some();
        assert!(!held, "{key}");
        let error = scene.calls().wait(bob(1), ttl(60), None, Scene::beat(2)).await;
        assert_eq!(error.expect_err("spoiled").kind(), StoreErrorKind::Corrupt, "{key}");
    }
}

#[tokio::test]
async fn a_withdrawal_and_a_forced_release_end_a_lease_whose_queue_is_spoiled() {
    for key in [1, 2] {
        let (subject, scene) = scenes().await;
        let [lease, ..] = keys(&subject, scene.name());
        for by_force in [false, true] {
            subject.server().flush_all();
            let fence = scene.granted(alice(1)).await.first;
            scene.queued(bob(1)).await;
            overwrite(&subject, &keys(&subject, scene.name())[key]);
            if by_force {
                scene.force_release(alice(1), fence).await;
            } else {
                assert!(scene.withdraw(alice(1)).await);
            }
            let held = LockText::of(subject.server(), &lease).lease.is_some();
            assert!(!held, "{key} by force: {by_force}");
        }
    }
}

#[tokio::test]
async fn what_is_known_of_a_waiter_may_be_lost_alone() {
    for key in [1, 2] {
        let (subject, scene) = scenes().await;
        let fence = scene.granted(alice(1)).await.first;
        scene.queued(bob(1)).await;
        scene.queued(carol(1)).await;
        subject.server().command(&["DEL", &keys(&subject, scene.name())[key]]);
        scene.queued(carol(1)).await;
        scene.release(alice(1), fence).await;
        assert_eq!(scene.holder().await.id, carol(1), "{key}");
        scene.pass(secs(3600)).await;
        assert!(subject.server().keys_without_ttl().is_empty());
    }
}
