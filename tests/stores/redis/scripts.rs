//! How scripts are sent, what they cost, and what they do on a server that refuses writes.

use leasehold_core::{
    AcquisitionId, Fence, RuntimeId,
    StoreErrorKind::Definite,
    store::{
        AcquireAnswer, ForceReleaseAnswer, Heartbeat, HoldAnswer, Inspection, ReleaseAnswer,
        RenewAnswer,
    },
};
use leasehold_testkit::{
    LockText, RedisServer,
    contract::{Calls, alice, bob, carol, secs, ttl},
};

use redis::Value;

use super::support::{assert_says, calls, digest, granted, store_on};

/// A sign of life with a claim window of half a minute.
fn beat(number: u64) -> Heartbeat {
    Heartbeat { number, claim_window: secs(30) }
}

/// How often a command was called, by clients or scripts.
fn called(server: &RedisServer, command: &str) -> u64 {
    calls_by_command(server).into_iter().find(|(name, _)| name == command).map_or(0, |(_, n)| n)
}

fn calls_by_command(server: &RedisServer) -> Vec<(String, u64)> {
    let stats: String = server.query(&["INFO", "commandstats"]);
    let of_line = |line: &str| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((command.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    stats.lines().filter_map(of_line).collect()
}

async fn queued(calls: &Calls, id: AcquisitionId) {
    let answer = calls.wait(id, ttl(60), None, beat(1)).await.expect("a wait");
    assert!(matches!(answer, AcquireAnswer::Queued(_)), "{answer:?}");
}

#[tokio::test]
async fn every_command_survives_a_script_flush() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let forget = || server.command(&["SCRIPT", "FLUSH"]);

    forget();
    let fence = granted(&calls, alice(1)).await;
    forget();
    let held = calls.hold(alice(1), fence, (2, 1), ttl(60)).await.expect("hold");
    assert!(matches!(held, HoldAnswer::Held { .. }), "{held:?}");
    forget();
    let batch = [calls.renewal(alice(1), fence, ttl(60))];
    let renewed = calls.renew(&batch).await.expect("renew");
    assert!(matches!(renewed[..], [RenewAnswer::Renewed { .. }]), "{renewed:?}");
    forget();
    let inspected = calls.inspect().await.expect("inspect");
    assert!(matches!(inspected, Inspection::Held(_)), "{inspected:?}");
    forget();
    queued(&calls, bob(1)).await;
    forget();
    let batch = [calls.waiter(bob(1), ttl(60), None, beat(2))];
    let told = calls.heartbeat(&batch).await.expect("heartbeat");
    assert!(matches!(told[..], [Ok(AcquireAnswer::Queued(_))]), "{told:?}");
    assert!(!calls.withdraw(bob(1)).await.expect("withdraw"));
    forget();
    let released = calls.release(alice(1), fence, None).await.expect("release");
    assert_eq!(released, ReleaseAnswer::Released);
    granted(&calls, alice(2)).await;
    forget();
    assert!(calls.withdraw(alice(2)).await.expect("withdraw"));
    let fence = granted(&calls, alice(3)).await;
    forget();
    let forced = calls.force_release(alice(3), fence).await.expect("force_release");
    assert!(matches!(forced, ForceReleaseAnswer::Ended { .. }), "{forced:?}");
}

#[test]
fn a_command_without_a_ttl_or_window_writes_nothing_and_spoils_no_other() {
    let server = RedisServer::start();
    let script = leasehold_testkit::script_of_commands();
    let keys = |name: &str| {
        ["lease", "queue", "waiters", "withdrawn"].map(|what| format!("{{{name}}}:{what}"))
    };
    // The bad command stands between two good ones.
    let answers = |bad: &[&str]| -> Vec<Vec<Value>> {
        let keys = ["a", "b", "c"].map(keys).concat();
        let mut words = vec!["EVAL", script, "12"];
        words.extend(keys.iter().map(String::as_str));
        words.extend(["60000", "leasehold:runtime:"]);
        let good =
            ["as", "60000", "30000", "me", "try", "f66e4dc5-8a3d-4d52-9cf3-a2dc12c8a9a3:1", "0"];
        words.extend([&good[..], bad, &good].concat());
        server.query(&words)
    };
    let is_refused = |answers: &[Vec<Value>], what: &str| {
        let text = format!("{:?}", answers[1]);
        assert!(text.contains("refused") && text.contains(what), "{text}");
        assert!(!server.query::<bool>(&["EXISTS", "{b}:lease"]), "{what}");
        assert!([&answers[0], &answers[2]].iter().all(|good| good.len() == 6), "{answers:?}");
    };
    let bob = "f66e4dc5-8a3d-4d52-9cf3-a2dc12c8a9a4:1";
    for ttl in ["0", "-1", "x", ""] {
        is_refused(&answers(&["as", ttl, "1000", "me", "try", bob, "0"]), "ttl above 0 ms");
    }
    server.command(&["ZADD", "{b}:queue", "1", "somebody"]);
    for window in ["0", "-1", "x", ""] {
        is_refused(
            &answers(&["as", "1000", window, "me", "acquire", bob, "0", "1"]),
            "window above 0 ms",
        );
    }
}

#[tokio::test]
async fn a_script_is_sent_with_its_text_once() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    server.command(&["CONFIG", "RESETSTAT"]);
    for number in 0..10 {
        let fence = granted(&calls, alice(number)).await;
        calls.release(alice(number), fence, None).await.expect("release");
    }
    assert_eq!((called(&server, "eval"), called(&server, "evalsha")), (1, 20));
}

/// How many commands scripts have called.
fn called_by_scripts(server: &RedisServer) -> u64 {
    let sent_by_clients = ["auth", "client", "config", "eval", "evalsha", "hello", "info", "ping"];
    let by_command = calls_by_command(server);
    let inside = |(name, _): &&(String, u64)| {
        !name.split('|').next().is_some_and(|command| sent_by_clients.contains(&command))
    };
    by_command.iter().filter(inside).map(|(_, calls)| calls).sum()
}

/// What the fast path costs, the time included; a mark of a withdrawal costs those who ask one look.
#[tokio::test]
async fn a_contended_lock_costs_few_calls_also_after_a_withdrawal() {
    for marked in [false, true] {
        let server = RedisServer::start();
        let calls = calls(&store_on(&server).await);
        let fence = granted(&calls, alice(1)).await;
        if marked {
            calls.withdraw(carol(9)).await.expect("withdraw");
        }
        let look = u64::from(marked);
        let cost = |expected: u64, what: &str| {
            assert_eq!(called_by_scripts(&server), expected, "{what}, marked: {marked}");
            server.command(&["CONFIG", "RESETSTAT"]);
        };
        server.command(&["CONFIG", "RESETSTAT"]);
        let busy = calls.acquire(bob(1), ttl(60), None).await.expect("a try");
        assert!(matches!(busy, AcquireAnswer::Busy { .. }), "{busy:?}");
        cost(5 + look, "a try of a held lock");
        queued(&calls, bob(2)).await;
        cost(8 + look, "the first place");
        queued(&calls, carol(1)).await;
        cost(8 + look, "another place");
        let heard = calls.wait(bob(2), ttl(60), None, beat(2)).await.expect("a heartbeat");
        assert!(matches!(heard, AcquireAnswer::Queued(_)), "{heard:?}");
        server.command(&["CONFIG", "RESETSTAT"]);
        calls.release(alice(1), fence, None).await.expect("release");
        cost(10, "a hand-over");
        let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("it was passed on") };
        assert_eq!(lease.id, bob(2));
        server.command(&["CONFIG", "RESETSTAT"]);
        calls.release(bob(2), lease.fence, None).await.expect("release");
        cost(10, "a hand-over to the last one");
        let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("it was passed on") };
        server.command(&["CONFIG", "RESETSTAT"]);
        calls.release(lease.id, lease.fence, None).await.expect("release");
        cost(3, "a release that nobody waits for");
        granted(&calls, alice(2)).await;
        cost(3 + look, "an acquire of a free lock");
    }
}

#[tokio::test]
async fn a_lock_that_nobody_waits_for_costs_few_calls() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let in_scripts = || called_by_scripts(&server);
    let mut costs = Vec::new();
    for number in 1..=2 {
        server.command(&["CONFIG", "RESETSTAT"]);
        let fence = granted(&calls, alice(number)).await;
        costs.push(in_scripts());
        server.command(&["CONFIG", "RESETSTAT"]);
        calls.release(alice(number), fence, None).await.expect("release");
        costs.push(in_scripts());
    }
    // The time, a read and a write; the first grant of a name reads twice, and looks whether the key is
    // there, and for what is left of an older one.
    assert_eq!(costs, [6, 3, 3, 3]);
}

#[tokio::test]
async fn a_full_server_refuses_places_and_passes_locks_on() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = granted(&calls, alice(1)).await;
    queued(&calls, bob(1)).await;
    let lonely = calls.about("orders/43");
    granted(&lonely, alice(2)).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);

    let before = digest(&server);
    for calls in [&calls, &lonely, &calls.about("orders/44")] {
        let error = calls.wait(carol(1), ttl(60), None, beat(1)).await.expect_err("no memory");
        assert_says(&error, Definite, "OOM", "maxmemory");
        let batch = [calls.waiter(carol(1), ttl(60), None, beat(2))];
        let told = calls.heartbeat(&batch).await.expect("an answer for each name");
        let [Err(error)] = &told[..] else { panic!("{told:?}") };
        assert_says(error, Definite, "OOM", "maxmemory");
    }
    assert_eq!(digest(&server), before);

    let next = calls.waiter(alice(3), ttl(60), None, beat(3));
    let answer = calls.release_and_queue(alice(1), fence, None, &next).await.expect("release");
    assert!(matches!(answer, ReleaseAnswer::NextQueued(place) if place.ahead == 0), "{answer:?}");
    let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("it was passed on") };
    assert_eq!((lease.id, lease.waiters[0].id), (bob(1), alice(3)));
    assert!(!calls.withdraw(carol(1)).await.expect("withdraw"));
    assert!(calls.withdraw(bob(1)).await.expect("withdraw"));
    let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("it was passed on") };
    assert_eq!(lease.id, alice(3));
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let late = calls.wait(carol(1), ttl(60), None, beat(3)).await.expect("an answer");
    assert_eq!(late, AcquireAnswer::Withdrawn);
}

#[tokio::test]
async fn a_heartbeat_of_many_names_is_one_call_for_64() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let names: Vec<_> = (0..400).map(|number| calls.about(&format!("orders/{number}"))).collect();
    for calls in names.iter().step_by(2) {
        granted(calls, alice(1)).await;
    }
    let waiters: Vec<_> =
        names.iter().map(|calls| calls.waiter(bob(1), ttl(60), None, beat(1))).collect();
    server.command(&["CONFIG", "RESETSTAT"]);
    let told = calls.heartbeat(&waiters).await.expect("heartbeat");
    let sent = called(&server, "evalsha");
    assert_eq!(sent, 7, "calls for 400 names");
    for (number, answer) in told.iter().enumerate() {
        let as_expected = match answer {
            Ok(AcquireAnswer::Queued(_)) => number % 2 == 0,
            Ok(AcquireAnswer::Granted(_)) => number % 2 == 1,
            _ => false,
        };
        assert!(as_expected, "{number}: {answer:?}");
    }
    for (calls, told) in names.iter().zip(&told).skip(1).step_by(2) {
        let again = calls.wait(bob(1), ttl(60), None, beat(2)).await.expect("a repeat");
        let (AcquireAnswer::Granted(again), Ok(AcquireAnswer::Granted(told))) = (again, told)
        else {
            panic!("{told:?}")
        };
        assert_eq!(again.first, told.first, "the answer is that of the name");
    }
}

/// An acquisition of the process with a number.
fn numbered(number: u64) -> AcquisitionId {
    let uuid = uuid::Uuid::from_u128(u128::from(number) + 1_000);
    AcquisitionId::new(RuntimeId::new(uuid), 1)
}

/// Processes wait in the order of their numbers; the first were last heard in the first second of the
/// epoch. Returns the fence of the lock, which somebody else holds.
async fn with_dead_before(server: &RedisServer, calls: &Calls, dead: u64, live: u64) -> Fence {
    let fence = granted(calls, alice(1)).await;
    for number in 0..dead + live {
        let answer = calls.wait(numbered(number), ttl(60), None, beat(1)).await.expect("a wait");
        assert!(matches!(answer, AcquireAnswer::Queued(place) if place.ahead == number));
    }
    for number in 0..dead {
        let place = format!("1 1 1000000 30000 60000 0 host/1/dead {number}");
        let runtime = numbered(number).runtime().to_string();
        server.command(&["HSET", "leasehold:{orders/42}:waiters", &runtime, &place]);
    }
    fence
}

/// How many places there are.
fn places(server: &RedisServer) -> u64 {
    let told: u64 = server.query(&["HLEN", "leasehold:{orders/42}:waiters"]);
    let queued: u64 = server.query(&["ZCARD", "leasehold:{orders/42}:queue"]);
    assert_eq!(told, queued);
    queued
}

#[tokio::test]
async fn a_queue_is_passed_through_in_order_and_its_dead_are_swept() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let mut fence = with_dead_before(&server, &calls, 250, 2).await;
    let mut holder = alice(1);
    for number in [250, 251] {
        let released = calls.release(holder, fence, None).await.expect("release");
        assert_eq!(released, ReleaseAnswer::Released);
        let Ok(Inspection::Held(lease)) = calls.inspect().await else { panic!("passed on") };
        assert_eq!(lease.id, numbered(number));
        assert_eq!(places(&server), 251 - number);
        (holder, fence) = (lease.id, lease.fence);
    }
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

/// A command stays short: behind very many dead places, the first of the living that asks gets the lock.
#[tokio::test]
async fn a_command_looks_at_256_places_and_the_next_goes_on_behind_them() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = with_dead_before(&server, &calls, 1_000, 2).await;
    let released = calls.release(alice(1), fence, None).await.expect("release");
    assert_eq!(released, ReleaseAnswer::Released);
    assert!(!matches!(calls.inspect().await, Ok(Inspection::Held(_))), "nobody was found");
    assert_eq!(places(&server), 1_002 - 256);
    let answer = calls.wait(numbered(1_001), ttl(60), None, beat(2)).await.expect("a heartbeat");
    assert!(matches!(answer, AcquireAnswer::Granted(_)), "{answer:?}");
    assert_eq!(places(&server), 1_001 - 2 * 256);
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

/// Otherwise a lock that is contended for long would be slow for as long.
#[tokio::test]
async fn marks_that_are_over_are_forgotten_while_others_wait() {
    const LEASE: &str = "leasehold:{orders/42}:lease";
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    let fence = granted(&calls, alice(1)).await;
    queued(&calls, bob(1)).await;
    assert!(!calls.withdraw(carol(9)).await.expect("withdraw"));
    assert!(LockText::of(&server, LEASE).marks.is_some());
    LockText::change(&server, LEASE, |text| text.marks = Some(1_000_000_000_000));
    let next = calls.waiter(alice(2), ttl(60), None, beat(2));
    calls.release_and_queue(alice(1), fence, None, &next).await.expect("release");
    let text = LockText::of(&server, LEASE);
    assert_eq!((&*text.flags, text.marks), ("w", None));
}

#[tokio::test]
async fn a_lock_that_may_be_kept_has_a_mark_before_its_label() {
    const LEASE: &str = "leasehold:{orders/42}:lease";
    const WAITERS: &str = "leasehold:{orders/42}:waiters";
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    for (number, mark) in [(1, "~"), (2, "")] {
        let calls = calls.clone().keeping(number == 1);
        let fence = granted(&calls, alice(number)).await;
        let label = format!("{mark}{}", Calls::LABEL);
        assert_eq!(LockText::of(&server, LEASE).lease().label, label);
        queued(&calls, bob(number)).await;
        let bobs = bob(number).runtime().to_string();
        let place: String = server.query(&["HGET", WAITERS, &bobs]);
        assert_eq!(place.splitn(6, ' ').last(), Some(&*label), "{place}");
        calls.release(alice(number), fence, None).await.expect("release");
        let text = LockText::of(&server, LEASE);
        assert_eq!(
            (&*text.lease().holder, &text.lease().label),
            (&*bob(number).to_stored(), &label)
        );
        calls
            .release(bob(number), text.lease().fence.try_into().expect("a token"), None)
            .await
            .expect("release");
    }
}
