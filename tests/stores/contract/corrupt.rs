//! What somebody overwrote spoils only the answers that need it: only a server's keys can be
//! overwritten, so this is no part of the suite.

use leasehold_core::{FenceSettings, LockName, StoreErrorKind, store::AcquireAnswer};
use leasehold_testkit::contract::{RedisSubject, Scene, alice, bob, carol, ttl};

/// The keys of a name, as the server has them.
fn keys(subject: &RedisSubject, name: &LockName) -> [String; 3] {
    ["lease", "queue", "waiters"].map(|kind| subject.key(name, kind))
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
