use std::time::Duration;

use leasehold::{Guard, LockRuntime, store::Inspection};
use leasehold_testkit::{Patience, RedisServer};

use super::scene::LONG;
use crate::support::{matrix::row, naive::NaiveLock, patient, raw, wait};

row! {
    namespace_clash: protected, control;
    fault: "programs share a server, with namespaces and names that are easily confused",
    right: "locks and messages of two namespaces, or of two databases, stay separate",
    control: "keys made of namespace, colon and name",
}

/// Namespaces and names that would be one text, if they were put together.
const SHOPS: [(&str, &str); 6] = [
    ("shop", "eu:stock"),
    ("shop:eu", "stock"),
    ("shop", "stock"),
    ("shop:runtime", "stock"),
    ("shop:eu:stock", "lease"),
    ("shop", "eu:{stock}:lease"),
];

/// So long that no heartbeat comes before a row has failed: messages alone wake who waits.
const FOR_EVER: Duration = Duration::from_secs(3600);

async fn connect(namespace: &str, server: &RedisServer, db: u32) -> LockRuntime {
    let builder = patient::builder().namespace(namespace).ttl(FOR_EVER).claim_window(FOR_EVER);
    builder.connect(&server.url_with("", "", db)).await.expect("the server answers")
}

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let mut held: Vec<(Guard, LockRuntime)> = Vec::new();
        for db in [0, 1] {
            for (namespace, name) in SHOPS {
                let locks = connect(namespace, &server, db).await;
                let lock = locks.lock(name).expect("a name");
                let guard = lock.try_acquire().await.expect("an answer");
                held.push((guard.expect("nobody has it"), connect(namespace, &server, db).await));
            }
        }
        let mut waiting = Vec::new();
        for (guard, locks) in &held {
            let lock = locks.lock(guard.name()).expect("a name");
            waiting.push(tokio::spawn(lock.acquire().wait_forever()));
            let stands_in_line = || async {
                let Ok(Inspection::Held(lease)) = locks.inspect(guard.name()).await else {
                    panic!("it is held")
                };
                (lease.waiters.len() == 1).then_some(())
            };
            let seen = Patience::of(wait::CEILING).until_async(stands_in_line).await;
            assert!(seen.is_some(), "{} has one waiter", guard.name());
        }
        let locks = held.len();
        for ((guard, _), waiter) in held.into_iter().zip(waiting).rev() {
            let (name, fence) = (guard.name().clone(), guard.fence());
            assert!(guard.is_held(), "{name}");
            guard.release().await.expect("held to the end");
            let next = wait::soon("the waiter has it", waiter).await.expect("no panic");
            let next = next.expect("a lease");
            assert!(next.name() == &name && next.fence() > fence, "{name}");
            next.release().await.expect("held to the end");
        }
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("{locks} locks held at once, each handed to its own waiter")
    })
}

fn control() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let mut strangers = 0;
        for (namespace, name) in SHOPS {
            let raw = raw::connect(&server.url()).await;
            let mut lock = NaiveLock::new(raw, &format!("{namespace}:{name}"), LONG);
            strangers += usize::from(lock.try_acquire().await.expect("an answer").is_none());
        }
        assert!(strangers > 0, "the control came to no harm");
        format!("{strangers} acquire waits for a stranger's lock")
    })
}
