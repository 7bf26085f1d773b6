//! Keys that are not what they should be: a typed error, before anything is written.

use leasehold_core::{
    StoreErrorKind,
    store::{ForceReleaseAnswer, Inspection, RenewAnswer},
};
use leasehold_testkit::{
    RedisServer,
    contract::{alice, bob, ttl},
};

use crate::support::{assert_says_of_lock, calls, digest, granted, store_on};

use StoreErrorKind::{Config, Corrupt};

const LEASE: &str = "leasehold:{orders/42}:lease";
const COUNTER: &str = "leasehold:{orders/42}:fence";

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
];

#[tokio::test]
async fn an_acquire_says_what_is_wrong_and_writes_nothing() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    for (set_up, kind, what, remedy) in BAD {
        server.flush_all();
        server.command(set_up);
        let before = digest(&server);
        let error = calls.acquire(alice(1), ttl(60), None).await.expect_err(what);
        assert_says_of_lock(&error, *kind, what, remedy);
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
