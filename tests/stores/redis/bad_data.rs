//! Keys that are not what they should be: a typed error, before anything is written.

use leasehold_core::{
    AcquisitionId, StoreErrorKind,
    store::{AcquireAnswer, ForceReleaseAnswer, Heartbeat, Inspection, ReleaseAnswer, RenewAnswer},
};
use leasehold_testkit::{
    LockText, RedisServer,
    contract::{Calls, alice, bob, carol, secs, ttl},
};

use super::support::{assert_says_of_lock, calls, digest, granted, store_on};

use StoreErrorKind::{Config, Corrupt};

const LEASE: &str = "leasehold:{orders/42}:lease";
const WITHDRAWN: &str = "leasehold:{orders/42}:withdrawn";
const QUEUE: &str = "leasehold:{orders/42}:queue";
const WAITERS: &str = "leasehold:{orders/42}:waiters";

/// Above the greatest fence.
const TOO_LARGE: &str = "9007199254740993";

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
    (&["HSET", LEASE, "colour", "red"], Config, "layout version \"\"", "another namespace"),
    (&["HSET", LEASE, "v", "6", "holder", "x"], Config, "layout version \"6\"", "update"),
    (&["SET", LEASE, "v5 1763864400000000"], Config, "layout version \"5\"", "redis+quorum://"),
    // As a later version may write it.
    (&["SET", LEASE, "v6 1763864400000000"], Config, "layout version \"6\"", "update"),
    // As older versions wrote it.
    (
        &["SET", LEASE, "w1763864400000000,h2/1 1764544800000"],
        Config,
        "layout version \"3\"",
        "another namespace",
    ),
    (
        &["HSET", LEASE, "v", "2", "lock", "1763864400000000 1764544800000"],
        Config,
        "layout version \"2\"",
        "another namespace",
    ),
    (
        &["HSET", LEASE, "v", "1", "fence", "5", "last", "9", "hold", "0", "label", "me"],
        Config,
        "layout version \"1\"",
        "another namespace",
    ),
    (&["SET", LEASE, "v4 x------- 9007199254740991 1000000000000"], Corrupt, "greatest value", ""),
    // Each of another width, or no number, and what says less or more than a lock does.
    (&["SET", LEASE, "v4 x------- 41 1000000000000"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["SET", LEASE, "v4 x------- 0000000000000041 0"], Corrupt, "WRONGTYPE", "another namespace"),
    (
        &["SET", LEASE, "v4 x------- 00000000000000ab 1000000000000"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 x------- -999999999999999 1000000000000"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 x------- 1234567890123.45 1000000000000"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (&["SET", LEASE, "v4 x------- 99999999999999999 1000000000000"], Corrupt, "WRONGTYPE", ""),
    (
        &["SET", LEASE, "v4 x------- 1234567890123456:9999999999999"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 x------- 1234567890123456 99999999999xx"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 x------- 0000000000000041  000000000000"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 x------- 0000000000000041 1000000000000 x"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 x---m--- 0000000000000041 1000000000000"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 x--h---- 0000000000000041 1000000000000 2/1"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 xkw----- 0000000000000041 1000000000000"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    // Flags and kinds without a meaning yet.
    (
        &["SET", LEASE, "v4 x------v 0000000000000041 1000000000000"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (
        &["SET", LEASE, "v4 y------- 0000000000000041 1000000000000"],
        Corrupt,
        "WRONGTYPE",
        "delete the key",
    ),
    (&["RPUSH", LEASE, "x"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["SET", LEASE, "foo bar"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["SET", LEASE, "0x10"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["SET", QUEUE, "x"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["RPUSH", QUEUE, "x"], Corrupt, "WRONGTYPE", "another namespace"),
    (&["SET", WITHDRAWN, "x"], Corrupt, "WRONGTYPE", "another namespace"),
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
async fn a_lease_ends_even_if_the_ttl_of_its_key_was_taken() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    granted(&calls, alice(1)).await;
    server.command(&["PERSIST", LEASE]);
    let answer = calls.acquire(bob(1), ttl(60), None).await.expect("an answer");
    let AcquireAnswer::Busy { remaining, .. } = answer else { panic!("{answer:?}") };
    assert!(remaining <= secs(60));
    LockText::change(&server, LEASE, |text| text.lease.as_mut().expect("a lease").end = 1);
    granted(&calls, bob(1)).await;
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

/// Such a lock cannot be had, so it is not told as free; the error names the keys.
#[tokio::test]
async fn a_look_at_a_free_lock_tells_of_every_key_of_another_type() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    for (key, put) in [(QUEUE, "SET"), (WITHDRAWN, "SET"), (WAITERS, "SET"), (WAITERS, "RPUSH")] {
        server.flush_all();
        assert!(matches!(calls.inspect().await, Ok(Inspection::Free { .. })), "{key}");
        server.command(&[put, key, "x"]);
        let error = calls.inspect().await.expect_err(key);
        assert_says_of_lock(&error, Corrupt, "WRONGTYPE", "`:withdrawn`");
    }
}

/// What stands there says nothing of the lease that was there.
#[tokio::test]
async fn no_command_takes_a_key_of_another_layout_for_the_end_of_a_lease() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let foreign: [&[&str]; 3] = [
        &["HSET", LEASE, "colour", "red"],
        &["HSET", LEASE, "v", "2"],
        &["SET", LEASE, "v6 1763864400000000"],
    ];
    for set_up in foreign {
        server.flush_all();
        let fence = granted(&calls, alice(1)).await;
        server.command(&["DEL", LEASE]);
        server.command(set_up);
        let before = digest(&server);
        let next = calls.waiter(alice(2), ttl(60), None, beat(2));
        let refused = [
            calls.hold(alice(1), fence, (2, 1), ttl(60)).await.expect_err("hold"),
            calls.release(alice(1), fence, None).await.expect_err("release"),
            calls.release(alice(1), fence, Some(secs(5))).await.expect_err("keep"),
            calls.release_and_queue(alice(1), fence, None, &next).await.expect_err("next"),
            calls.inspect().await.expect_err("inspect"),
            calls.force_release(alice(1), fence).await.expect_err("force_release"),
        ];
        for error in refused {
            assert_says_of_lock(&error, Config, "layout version", "another namespace");
        }
        assert_eq!(digest(&server), before, "{set_up:?}");
    }
}

#[tokio::test]
async fn a_key_of_another_type_spoils_no_other_renewal() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let other = calls.about("orders/43");
    let fences = [granted(&calls, alice(1)).await, granted(&other, alice(2)).await];
    let batch =
        [calls.renewal(alice(1), fences[0], ttl(60)), other.renewal(alice(2), fences[1], ttl(60))];
    let foreign: [&[&str]; 5] = [
        &["SET", LEASE, "x"],
        &["SET", LEASE, "v6 1763864400000000"],
        &["HSET", LEASE, "colour", "red"],
        &["HSET", LEASE, "v", "2"],
        &["RPUSH", LEASE, "x"],
    ];
    for set_up in foreign {
        server.command(&["DEL", LEASE]);
        server.command(set_up);
        let answers = calls.renew(&batch).await.expect("renew");
        assert!(
            matches!(answers[..], [RenewAnswer::Corrupt, RenewAnswer::Renewed { .. }]),
            "{set_up:?}: {answers:?}"
        );
    }
}

#[tokio::test]
async fn a_spoiled_counter_keeps_nobody_from_ending_a_lease() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = granted(&calls, alice(1)).await;
    LockText::change(&server, LEASE, |text| text.counter = TOO_LARGE.into());
    let answer = calls.force_release(alice(1), fence).await.expect("force_release");
    assert_eq!(answer, ForceReleaseAnswer::Ended { fence: None });
    let counter = LockText::of(&server, LEASE).counter;
    assert_eq!(counter, TOO_LARGE, "the counter is as it was found");
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
    let is_free = || LockText::of(&server, LEASE).lease.is_none();
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
        assert_eq!(answer.expect("release"), ReleaseAnswer::Released);
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
    let fence = granted(&calls, alice(1)).await;
    queued(&calls, bob(1)).await;
    LockText::change(&server, LEASE, |text| text.counter = TOO_LARGE.into());
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
    server.command(&["DEL", LEASE]);
    let answer = calls.wait(bob(1), ttl(60), None, beat(4)).await.expect("a counter again");
    assert!(matches!(answer, AcquireAnswer::Granted(_)), "{answer:?}");
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
