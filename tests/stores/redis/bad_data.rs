//! Keys that are not what they should be: a typed error, before anything is written.

use leasehold_core::{
    AcquisitionId, LockName, StoreErrorKind,
    store::{AcquireAnswer, ForceReleaseAnswer, Heartbeat, Inspection, ReleaseAnswer, RenewAnswer},
};
use leasehold_testkit::{
    RedisServer,
    contract::{Calls, alice, bob, carol, secs, ttl},
};

use super::support::{assert_says_of_lock, calls, digest, granted, store_on};

use StoreErrorKind::{Config, Corrupt};

const LEASE: &str = "leasehold:{orders/42}:lease";
const COUNTER: &str = "leasehold:{orders/42}:fence";
const QUEUE: &str = "leasehold:{orders/42}:queue";
const WAITERS: &str = "leasehold:{orders/42}:waiters";

/// A sign of life with a claim window of half a minute.
fn beat(number: u64) -> Heartbeat {
    Heartbeat { number, claim_window: secs(30) }
}

async fn queued(calls: &Calls, id: AcquisitionId) {
    let answer = calls.wait(id, ttl(60), None, beat(1)).await.expect("a wait");
    assert!(matches!(answer, AcquireAnswer::Queued(_)), "{answer:?}");
}

/// What stands under the lock's keys, and what an acquire says of it.
const BAD: &[(&[&str], StoreErrorKind, &str, &str)] = &[
    (&["SET", LEASE, "x"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["SET", LEASE, "x", "PX", "60000"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["RPUSH", COUNTER, "x"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["HSET", LEASE, "colour", "red"], Config, "layout version \"\"", "another namespace"),
    (&["HSET", LEASE, "v", "2", "holder", "x"], Config, "layout version \"2\"", "update"),
    (&["HSET", LEASE, "v", "1", "fence", "5"], Corrupt, "no time to live", "PEXPIRE"),
    (&["SET", COUNTER, "abc"], Corrupt, "\"abc\"", "delete the key"),
    (&["SET", COUNTER, "-5"], Corrupt, "\"-5\"", "delete the key"),
    (&["SET", COUNTER, "1e3"], Corrupt, "\"1e3\"", "delete the key"),
    (&["SET", COUNTER, "99999999999999999"], Corrupt, "\"99999999999999999\"", "delete the key"),
    (&["SET", COUNTER, ""], Corrupt, "\"\"", "delete the key"),
    (&["SET", COUNTER, "9007199254740991"], Corrupt, "greatest value", "delete its key"),
    (&["SET", QUEUE, "x"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["RPUSH", QUEUE, "x"], Corrupt, "WRONGTYPE", "another namespace"),
];

#[tokio::test]
async fn an_acquire_says_what_is_wrong_and_writes_nothing() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    for (set_up, kind, what, remedy) in BAD {
        server.flush_all();
        server.command(set_up);
        let before = digest(&server);
        let batch = [calls.waiter(alice(1), ttl(60), None, beat(1))];
        let refused = [
            calls.acquire(alice(1), ttl(60), None).await.expect_err(what),
            calls.wait(alice(1), ttl(60), None, beat(1)).await.expect_err(what),
            calls.heartbeat(&batch).await.expect("one for each").remove(0).expect_err(what),
        ];
        for error in refused {
            assert_says_of_lock(&error, *kind, what, remedy);
        }
        assert_eq!(digest(&server), before, "{set_up:?}");
    }
}

#[tokio::test]
async fn a_lease_whose_ttl_was_taken_is_not_waited_for() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = granted(&calls, alice(1)).await;
    server.command(&["PERSIST", LEASE]);
    let refused = [
        calls.acquire(bob(1), ttl(60), None).await.expect_err("busy for ever"),
        calls.inspect().await.expect_err("held for ever"),
    ];
    for error in refused {
        assert_says_of_lock(&error, Corrupt, "no time to live", "PEXPIRE");
    }
    // The holder itself gives it one again.
    let renewal = calls.renewal(alice(1), fence, ttl(60));
    let answers = calls.renew(&[renewal]).await.expect("renew");
    assert!(matches!(answers[..], [RenewAnswer::Renewed { .. }]), "{answers:?}");
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[tokio::test]
async fn every_command_refuses_a_key_of_another_type() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = granted(&calls, alice(1)).await;
    server.command(&["SET", LEASE, "x"]);
    let before = digest(&server);
    let refused = [
        calls.hold(alice(1), fence, (2, 1), ttl(60)).await.expect_err("hold"),
        calls.release(alice(1), fence, None).await.expect_err("release"),
        calls.withdraw(alice(1)).await.expect_err("withdraw"),
        calls.inspect().await.expect_err("inspect"),
        calls.force_release(alice(1), fence).await.expect_err("force_release"),
    ];
    for error in refused {
        assert_says_of_lock(&error, Corrupt, "WRONGTYPE", "another namespace");
    }
    assert_eq!(digest(&server), before);
}

#[tokio::test]
async fn a_key_of_another_type_spoils_no_other_renewal() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let other = calls.about("orders/43");
    let fences = [granted(&calls, alice(1)).await, granted(&other, alice(2)).await];
    server.command(&["SET", LEASE, "x"]);
    let batch =
        [calls.renewal(alice(1), fences[0], ttl(60)), other.renewal(alice(2), fences[1], ttl(60))];
    let answers = calls.renew(&batch).await.expect("renew");
    assert!(
        matches!(answers[..], [RenewAnswer::Corrupt, RenewAnswer::Renewed { .. }]),
        "{answers:?}"
    );
}

#[tokio::test]
async fn a_spoiled_counter_keeps_nobody_from_ending_a_lease() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    for set_up in [&["SET", COUNTER, "abc"][..], &["RPUSH", COUNTER, "x"]] {
        server.flush_all();
        let fence = granted(&calls, alice(1)).await;
        server.command(&["DEL", COUNTER]);
        server.command(set_up);
        let before: Vec<String> = server.query(&["OBJECT", "ENCODING", COUNTER]);
        let answer = calls.force_release(alice(1), fence).await.expect("force_release");
        assert_eq!(answer, ForceReleaseAnswer::Ended { fence: None });
        let after: Vec<String> = server.query(&["OBJECT", "ENCODING", COUNTER]);
        assert_eq!(before, after, "the counter is as it was found");
    }
    server.command(&["DEL", COUNTER]);
    server.command(&["SET", COUNTER, "abc"]);
    let free = calls.inspect().await.expect("inspect");
    assert_eq!(free, Inspection::Free { last_fence: None });
}

/// What may stand under the keys of a queue that is none, by whatever hand.
const NO_QUEUES: &[&[&str]] = &[&["SET", QUEUE, "x"], &["SET", WAITERS, "x"]];

#[tokio::test]
async fn a_queue_of_another_type_keeps_nobody_from_ending_a_lease() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let spoiled = async |set_up: &[&str]| {
        server.flush_all();
        let fence = granted(&calls, alice(1)).await;
        queued(&calls, bob(1)).await;
        server.command(&["DEL", set_up[1]]);
        server.command(set_up);
        fence
    };
    let is_free = || server.query::<u64>(&["EXISTS", LEASE]) == 0;
    for set_up in NO_QUEUES {
        let fence = spoiled(set_up).await;
        let error = calls.wait(carol(1), ttl(60), None, beat(1)).await.expect_err("no queue");
        assert_says_of_lock(&error, Corrupt, "WRONGTYPE", "another namespace");
        let released = calls.release(alice(1), fence, None).await.expect("release");
        assert_eq!(released, ReleaseAnswer::Released);
        assert!(is_free(), "{set_up:?}");

        let fence = spoiled(set_up).await;
        let next = calls.waiter(alice(2), ttl(60), None, beat(2));
        let answer = calls.release_and_queue(alice(1), fence, None, &next).await;
        assert_eq!(answer.expect("release"), ReleaseAnswer::Gone);
        assert!(is_free(), "{set_up:?}");

        spoiled(set_up).await;
        assert!(calls.withdraw(alice(1)).await.expect("withdraw"));
        assert!(is_free(), "{set_up:?}");

        let fence = spoiled(set_up).await;
        let answer = calls.force_release(alice(1), fence).await.expect("force_release");
        assert!(matches!(answer, ForceReleaseAnswer::Ended { fence: Some(_) }), "{answer:?}");
        assert!(is_free(), "{set_up:?}");
    }
}

#[tokio::test]
async fn a_spoiled_counter_leaves_waiters_in_their_places_and_tells_them() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    for set_up in [&["SET", COUNTER, "abc"][..], &["RPUSH", COUNTER, "x"]] {
        server.flush_all();
        let fence = granted(&calls, alice(1)).await;
        queued(&calls, bob(1)).await;
        server.command(&["DEL", COUNTER]);
        server.command(set_up);
        let next = calls.waiter(alice(2), ttl(60), None, beat(2));
        let answer = calls.release_and_queue(alice(1), fence, None, &next).await.expect("release");
        let ReleaseAnswer::NextQueued(place) = answer else { panic!("{answer:?}") };
        assert_eq!((place.ahead, place.remaining), (1, secs(0)));
        for id in [bob(1), alice(2)] {
            let batch = [calls.waiter(id, ttl(60), None, beat(3))];
            let told = calls.heartbeat(&batch).await.expect("an answer for each").remove(0);
            let error = told.expect_err("there is no counter");
            assert_says_of_lock(&error, Corrupt, "", "");
        }
        let places: Vec<String> = server.query(&["ZRANGE", QUEUE, "0", "-1"]);
        assert_eq!(places, [bob(1), alice(2)].map(|id| id.runtime().to_string()));
        server.command(&["DEL", COUNTER]);
        let answer = calls.wait(bob(1), ttl(60), None, beat(4)).await.expect("a counter again");
        assert!(matches!(answer, AcquireAnswer::Granted(_)), "{answer:?}");
    }
}

#[tokio::test]
async fn a_key_of_another_type_spoils_no_other_heartbeat() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let names = ["orders/42", "orders/43", "orders/44", "orders/45"].map(|name| calls.about(name));
    granted(&names[1], alice(1)).await;
    server.command(&["SET", LEASE, "x"]);
    server.command(&["RPUSH", "leasehold:{orders/44}:fence", "x"]);
    let batch = names.each_ref().map(|calls| calls.waiter(bob(1), ttl(60), None, beat(1)));
    let told = calls.heartbeat(&batch).await.expect("an answer for each");
    let [Err(lease), Ok(AcquireAnswer::Queued(_)), Err(counter), Ok(AcquireAnswer::Granted(_))] =
        &told[..]
    else {
        panic!("{told:?}")
    };
    assert_says_of_lock(lease, Corrupt, "WRONGTYPE", "another namespace");
    assert_eq!(counter.lock().map(LockName::as_str), Some("orders/44"));
}

#[tokio::test]
async fn a_place_that_is_not_understood_counts_as_dead() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = granted(&calls, alice(1)).await;
    queued(&calls, bob(1)).await;
    queued(&calls, carol(1)).await;
    server.command(&["HSET", WAITERS, &bob(1).runtime().to_string(), "of a later version"]);
    calls.release(alice(1), fence, None).await.expect("release");
    let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("it was passed on") };
    assert_eq!(lease.id, carol(1));
    queued(&calls, bob(1)).await;
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}
