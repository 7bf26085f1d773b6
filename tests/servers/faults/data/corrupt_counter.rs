use leasehold::{Released, error::StoreErrorKind::Corrupt};
use leasehold_testkit::{LockText, RedisServer};

use super::scene::{LONG, assert_says, connect, exists, key, refusal, replace, use_lock};
use crate::support::{lease, matrix::row, naive::NaiveLock, raw, wait};

row! {
    corrupt_counter: protected, control;
    fault: "the fence counter is above the greatest fence",
    right: "acquires are refused before anything is written; a release ends its lease",
    control: "a script that writes the lease and then runs INCR",
}

/// What stands in the place of the counter.
const STRANGE: [&str; 2] = ["9007199254740993", "9999999999999999"];
/// What stands there, and is not even a number for `INCR`.
const NO_NUMBERS: [&str; 7] = ["abc", "", "-5", "1.5", "nan", "1e17", "9223372036854775807"];

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
        let (lock, waiting) = (locks.lock("a").expect("a name"), others.lock("a").expect("a name"));
        let lease = key("a", "lease");
        let counter = || LockText::of(&server, &lease).counter;
        let mut last = 0;
        for put in STRANGE {
            let says = |error| assert_says(&error, Corrupt, &["lock \"a\"", "greatest value"]);
            let guard = lock.acquire().await.expect("a lease");
            let waiter = tokio::spawn(waiting.acquire().wait_forever());
            wait::until("it waits", || exists(&server, &key("a", "queue"))).await;
            LockText::change(&server, &lease, |text| text.counter = put.into());
            assert!(matches!(guard.release().await, Ok(Released::Ended)), "{put:?}");
            says(refusal(wait::soon("the waiter is told", waiter).await.expect("no panic")));
            says(refusal(lock.try_acquire().await));
            says(refusal(wait::soon("an error", waiting.acquire()).await));
            assert!(!lease::is_held(&server, &lease), "{put:?}");
            assert_eq!(counter(), put);
            server.command(&["DEL", &lease]);
            let fence = use_lock(&others, "a").await;
            assert!(fence > last, "{fence} after {last}");
            last = fence;
        }
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("{} counters refused 3 times each; 0 leases half written", STRANGE.len())
    })
}

fn control() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let mut taken = 0;
        for put in NO_NUMBERS {
            let raw = raw::connect(&server.url()).await;
            let mut lock = NaiveLock::new(raw, "a", LONG);
            let (lease, counter) = (lock.key(), format!("{}:counter", lock.key()));
            server.command(&["DEL", &lease]);
            replace(&server, &counter, &["SET", put]);
            // All fail but one.
            let failed = lock.try_acquire().await.is_err();
            if failed && exists(&server, &lease) {
                assert!(matches!(lock.try_acquire().await, Ok(None)), "{put:?}");
                taken += 1;
            }
        }
        assert!(taken > 0, "the control came to no harm");
        format!("{taken} times the lock is taken, and nobody has it")
    })
}
