use leasehold::{Released, error::StoreErrorKind::Corrupt};
use leasehold_testkit::RedisServer;

use super::scene::{assert_says, connect, dump, exists, key, refusal, replace, use_lock};
use crate::support::{lease, matrix::row, wait};

row! {
    corrupt_queue: protected, control;
    fault: "the queue, or the hash of the waiters, has another type",
    right: "a release ends its lease; waiters get an error that names the lock",
    control: "a release that first takes the next waiter and then deletes the lease",
}

const STRANGE: [&[&str]; 3] = [&["SET", "somebody's"], &["RPUSH", "a", "b"], &["SADD", "a"]];

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
        let (lock, waiting) = (locks.lock("a").expect("a name"), others.lock("a").expect("a name"));
        let words = ["lock \"a\"", "another program uses the key"];
        let mut released = 0;
        for what in ["queue", "waiters"] {
            for (put, asks_again) in STRANGE.iter().flat_map(|put| [(put, false), (put, true)]) {
                let guard = lock.acquire().wait(wait::CEILING).await.expect("a lease");
                let waiter = tokio::spawn(waiting.acquire().wait_forever());
                wait::until("it waits", || exists(&server, &key("a", "waiters"))).await;
                replace(&server, &key("a", what), put);
                let strange = dump(&server, &key("a", what));
                if asks_again {
                    // Its runtime releases and queues again by one command.
                    drop(guard);
                    let told = lock.acquire().wait_forever().await;
                    assert_says(&refusal(told), Corrupt, &words);
                } else {
                    let released = guard.release().await;
                    assert!(matches!(released, Ok(Released::Ended)), "{what}: {put:?}");
                }
                assert!(!lease::is_held(&server, &key("a", "lease")), "{what}: {put:?}");
                let told = wait::soon("the waiter is told", waiter).await.expect("no panic");
                assert_says(&refusal(told), Corrupt, &words);
                if what == "queue" {
                    assert_says(&refusal(lock.try_acquire().await), Corrupt, &words);
                }
                assert_eq!(dump(&server, &key("a", what)), strange, "{what}: {put:?}");
                server.command(&["DEL", &key("a", "queue"), &key("a", "waiters")]);
                use_lock(&others, "a").await;
                released += 1;
            }
        }
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("{released} leases released, {released} waiters got the error")
    })
}

/// Tells the next one that the lock is free, and frees it.
const NAIVE: &str = "\
local next = redis.call('ZPOPMIN', KEYS[2])
redis.call('DEL', KEYS[1])
return next";

fn control() -> String {
    let server = RedisServer::start();
    let release = || {
        let asked = server.try_query::<redis::Value>(&["EVAL", NAIVE, "2", "lease", "queue"]);
        asked.is_ok()
    };
    for put in STRANGE {
        server.command(&["SET", "lease", "me", "PX", "60000"]);
        replace(&server, "queue", put);
        assert!((0..10).all(|_| !release()), "{put:?}: it was released");
        assert!(exists(&server, "lease"), "the control came to no harm");
    }
    format!("{} locks stay taken after 10 releases each", STRANGE.len())
}
