//! Users who may not do what the scripts do: they hear it at connect, before any lock is taken.

use leasehold_core::{
    StoreErrorKind,
    store::{AcquireAnswer, ForceReleaseAnswer, Heartbeat, Inspection, ReleaseAnswer},
};
use leasehold_testkit::{
    RedisServer,
    contract::{alice, bob, carol, secs, ttl},
};

use super::support::{assert_says, assert_says_of_lock, calls, connect, digest, granted};

use StoreErrorKind::Config;

/// The rights that the documentation asks for, all of them.
const ENOUGH: &[&str] = &["~leasehold:*", "&leasehold:*", "+@all"];

/// A user with a password and these rights; the address under which to be that user.
fn user_with(server: &RedisServer, rights: &[&str]) -> String {
    let user = ["ACL", "SETUSER", "app", "reset", "resetchannels", "on", ">sesame"];
    server.command(&[&user[..], rights].concat());
    server.url_with("app", "sesame", 0)
}

async fn refused(server: &RedisServer, rights: &[&str], what: &str) {
    let url = user_with(server, rights);
    let error = connect(&url).await.expect_err(what);
    assert_says(&error, Config, what, "docs/operations.md");
    assert!(!error.to_string().contains("sesame"), "{error}");
    assert_eq!(server.keys_without_ttl(), [""; 0], "{rights:?}");
}

#[tokio::test]
async fn a_command_that_is_missing_shows_at_connect() {
    let server = RedisServer::start();
    for command in [
        "pexpire",
        "pttl",
        "exists",
        "time",
        "del",
        "getrange",
        "getex",
        "set",
        "hstrlen",
        "hget",
        "hset",
        "hdel",
        "zadd",
        "zrange",
        "zcard",
        "zrank",
        "zscore",
        "zcount",
        "zremrangebyrank",
        "zrem",
        "publish",
    ] {
        let without = format!("-{command}");
        refused(&server, &[ENOUGH, &[&without]].concat(), server.version().denied_command()).await;
    }
    for command in ["evalsha", "eval"] {
        server.command(&["SCRIPT", "FLUSH"]);
        let without = format!("-{command}");
        refused(&server, &[ENOUGH, &[&without]].concat(), "NOPERM").await;
    }
}

#[tokio::test]
async fn keys_and_channels_that_are_missing_show_at_connect() {
    let server = RedisServer::start();
    refused(&server, &["~other:*", "&leasehold:*", "+@all"], "NOPERM").await;
    refused(&server, &["~leasehold:*lease", "&leasehold:*", "+@all"], "NOPERM").await;
    let denied = server.version().denied_channel();
    refused(&server, &["~leasehold:*", "resetchannels", "+@all"], denied).await;
    refused(&server, &["~leasehold:*", "&other:*", "+@all"], denied).await;
}

#[tokio::test]
async fn rights_that_go_later_are_told_with_the_lock_and_leave_no_lease() {
    let server = RedisServer::start();
    let calls = calls(&connect(&user_with(&server, ENOUGH)).await.expect("enough rights"));
    for command in ["exists", "set", "getrange", "evalsha"] {
        server.command(&["ACL", "SETUSER", "app", &format!("-{command}")]);
        let error = calls.acquire(alice(1), ttl(60), None).await.expect_err(command);
        assert_says_of_lock(&error, Config, "", "docs/operations.md");
        let leases: u32 = server.query(&["EXISTS", "leasehold:{orders/42}:lease"]);
        assert_eq!(leases, 0, "without {command}");
        server.command(&["ACL", "SETUSER", "app", &format!("+{command}")]);
    }
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    let fence = granted(&calls, alice(1)).await;
    server.command(&["ACL", "SETUSER", "app", "-set"]);
    let before = digest(&server);
    // Longer than the lease has: a renewal in the millisecond of the grant would write nothing else.
    let renewal = calls.renewal(alice(1), fence, ttl(61));
    let refused = [
        calls.hold(alice(1), fence, (2, 1), ttl(60)).await.expect_err("hold"),
        calls.release(alice(1), fence, Some(ttl(60).get())).await.expect_err("keep"),
        calls.renew(&[renewal]).await.expect_err("renew"),
    ];
    for error in refused {
        assert_says(&error, Config, server.version().denied_command(), "docs/operations.md");
    }
    assert_eq!(digest(&server), before);
}

/// A waiter that lost its place would be overtaken by the next one.
#[tokio::test]
async fn a_refusal_to_pass_the_lock_on_costs_no_waiter_its_place() {
    let server = RedisServer::start();
    let calls = calls(&connect(&user_with(&server, ENOUGH)).await.expect("enough rights"));
    for right in ["set", "getex", "hset", "zadd", "zrem", "hdel"] {
        server.flush_all();
        let fence = granted(&calls, alice(1)).await;
        let beat = |number| Heartbeat { number, claim_window: secs(30) };
        for id in [bob(1), carol(1)] {
            calls.wait(id, ttl(60), None, beat(1)).await.expect("a place");
        }
        server.command(&["ACL", "SETUSER", "app", &format!("-{right}")]);
        drop(calls.release(alice(1), fence, None).await);
        server.command(&["ACL", "SETUSER", "app", &format!("+{right}")]);
        for id in [carol(1), bob(1)] {
            calls.wait(id, ttl(60), None, beat(2)).await.expect("an answer");
        }
        drop(calls.release(alice(1), fence, None).await);
        let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("{right}") };
        assert_eq!(lease.id, bob(1), "without {right}");
    }
}

#[tokio::test]
async fn rights_that_go_later_leave_no_place_that_stays_for_ever() {
    let server = RedisServer::start();
    let calls = calls(&connect(&user_with(&server, ENOUGH)).await.expect("enough rights"));
    granted(&calls, alice(1)).await;
    let first = Heartbeat { number: 1, claim_window: secs(30) };
    for command in ["pexpire", "zadd", "hset", "set"] {
        server.command(&["ACL", "SETUSER", "app", &format!("-{command}")]);
        let error = calls.wait(bob(1), ttl(60), None, first).await.expect_err(command);
        assert_says_of_lock(&error, Config, "", "docs/operations.md");
        assert_eq!(server.keys_without_ttl(), [""; 0], "without {command}");
        server.command(&["ACL", "SETUSER", "app", &format!("+{command}")]);
    }
    let batch = [calls.waiter(bob(1), ttl(60), None, first)];
    server.command(&["ACL", "SETUSER", "app", "-zrange"]);
    let told = calls.heartbeat(&batch).await.expect("an answer for each name");
    let [Err(error)] = &told[..] else { panic!("{told:?}") };
    assert_says_of_lock(error, Config, "", "docs/operations.md");
}

#[tokio::test]
async fn a_channel_that_goes_later_does_not_keep_a_lease_from_ending() {
    let server = RedisServer::start();
    let calls = calls(&connect(&user_with(&server, ENOUGH)).await.expect("enough rights"));
    let fence = granted(&calls, alice(1)).await;
    let first = Heartbeat { number: 1, claim_window: secs(30) };
    for id in [alice(2), bob(2)] {
        let answer = calls.wait(id, ttl(60), None, first).await.expect("a wait");
        assert!(matches!(answer, AcquireAnswer::Queued(_)), "{answer:?}");
    }
    server.command(&["ACL", "SETUSER", "app", "resetchannels"]);
    let answer = calls.release(alice(1), fence, None).await.expect("release");
    assert_eq!(answer, ReleaseAnswer::Released);
    let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("it was passed on") };
    assert_eq!(lease.id, alice(2));
    let answer = calls.force_release(alice(2), lease.fence).await.expect("force_release");
    assert!(matches!(answer, ForceReleaseAnswer::Ended { fence: Some(_) }), "{answer:?}");
    let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("it was passed on") };
    assert_eq!(lease.id, bob(2));
}

/// A holder that keeps the lock idle is not told then; its lease ends by itself.
#[tokio::test]
async fn a_channel_that_goes_later_costs_no_waiter_its_place() {
    let server = RedisServer::start();
    let calls = calls(&connect(&user_with(&server, ENOUGH)).await.expect("enough rights"));
    granted(&calls.clone().keeping(true), alice(1)).await;
    server.command(&["ACL", "SETUSER", "app", "resetchannels"]);
    let beat = |number| Heartbeat { number, claim_window: secs(30) };
    let answer = calls.wait(bob(1), ttl(60), None, beat(1)).await.expect("a place");
    assert!(matches!(answer, AcquireAnswer::Queued(_)), "{answer:?}");
    let batch = [calls.waiter(bob(1), ttl(60), None, beat(2))];
    let told = calls.heartbeat(&batch).await.expect("heartbeat");
    assert!(matches!(told[..], [Ok(AcquireAnswer::Queued(_))]), "{told:?}");
}
