//! The gates before a real server: what a stale writer can do without one, and not with one.

mod limits;
mod scripts;

use std::time::Duration;

use leasehold_core::{AcquisitionId, Fence, RuntimeId, StoreErrorKind};
use leasehold_fencing::{
    Admitted, BodyError, FenceGate, GateError, RedisGate, ResourceError, StaleFence, Stamp,
};
use leasehold_redis::{RedisConfig, RedisPool};
use leasehold_testkit::RedisServer;
use redis::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

const KEY: &str = "stock:{7}";
const WATERMARK: &str = "stock:{7}:watermark";

fn stamp(fence: u64, lease: u64) -> Stamp {
    let lease = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(1)), lease);
    Stamp::new(Fence::try_from(fence).unwrap(), lease)
}

fn gate_at(url: &str) -> RedisGate {
    let config = RedisConfig::new(url).unwrap().command_timeout(Duration::from_millis(500));
    RedisGate::new(RedisPool::new(&config).unwrap())
}

fn stale(presented: Stamp, highest: Stamp) -> GateError {
    StaleFence { presented, highest, resource: KEY.into() }.into()
}

fn get(server: &RedisServer, key: &str) -> Option<String> {
    server.query(&["GET", key])
}

fn store_kind<T: std::fmt::Debug>(outcome: Result<T, GateError>) -> StoreErrorKind {
    match outcome {
        Err(GateError::Store(error)) => {
            assert!(error.to_string().contains("the gate of \""), "{error}");
            error.kind()
        }
        other => panic!("not a failure of the store: {other:?}"),
    }
}

#[tokio::test]
async fn a_gate_connects_to_an_address() {
    let server = RedisServer::start();
    let gate = RedisGate::connect(&*server.url()).await.unwrap();
    assert_eq!(gate.set(KEY, "a", stamp(9, 1)).await, Ok(Admitted::First));

    let nobody = RedisGate::connect("redis://127.0.0.1:1").await.unwrap_err();
    assert_eq!(nobody.kind(), StoreErrorKind::Definite, "{nobody}");
    let no_address = RedisGate::connect("redis:/127.0.0.1").await.unwrap_err();
    assert_eq!(no_address.kind(), StoreErrorKind::Config, "{no_address}");
    assert!(no_address.to_string().contains("cannot be used"), "{no_address}");
}

#[tokio::test]
async fn a_fenced_set_takes_newer_fences_and_equal_ones_of_the_same_lease() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    // One digit more is newer: fences are compared as numbers.
    let (older, newer) = (stamp(9, 1), stamp(10, 2));

    assert_eq!(gate.set(KEY, "a", older).await, Ok(Admitted::First));
    assert_eq!(gate.set(KEY, "b", older).await, Ok(Admitted::Again));
    assert_eq!(gate.set(KEY, "c", newer).await, Ok(Admitted::Newer));
    assert_eq!(gate.set(KEY, "stale", older).await, Err(stale(older, newer)));
    let same_fence = stamp(10, 3);
    assert_eq!(gate.set(KEY, "stale", same_fence).await, Err(stale(same_fence, newer)));
    assert_eq!(gate.set(KEY, [0, 159, 13].as_slice(), newer).await, Ok(Admitted::Again));

    assert_eq!(server.query::<Vec<u8>>(&["GET", KEY]), [0, 159, 13]);
    assert_eq!(get(&server, WATERMARK), Some(newer.to_string()));
    assert_eq!(server.keys_without_ttl(), ["0/stock:{7}", "0/stock:{7}:watermark"]);
}

#[tokio::test]
async fn racing_writers_never_write_behind_a_newer_one() {
    const WRITERS: u64 = 8;
    const ROUNDS: u64 = 50;
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let append = gate.wrap("return redis.call('RPUSH', KEYS[1], ARGV[1])");
    let mut writers = JoinSet::new();
    for writer in 1..=WRITERS {
        let append = append.clone();
        writers.spawn(async move {
            let mut accepted = Vec::new();
            for round in 0..ROUNDS {
                // Every writer takes every eighth fence, so they overtake each other.
                let fence = round * WRITERS + writer;
                match append.call(KEY, [KEY], [fence.to_string()], stamp(fence, fence)).await {
                    Ok(_) => accepted.push(fence),
                    Err(GateError::Stale(stale)) => assert!(stale.highest.fence.get() > fence),
                    Err(error) => panic!("{error}"),
                }
            }
            accepted
        });
    }
    let mut accepted = writers.join_all().await.concat();
    accepted.sort_unstable();
    let written: Vec<u64> = server.query(&["LRANGE", KEY, "0", "-1"]);
    assert!(written.is_sorted(), "{written:?}");
    assert_eq!(written, accepted);
    assert_eq!(written.last(), Some(&(WRITERS * ROUNDS)));
}

#[tokio::test]
async fn a_wrapped_script_sees_its_own_keys_and_arguments_and_answers_for_itself() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let (older, newer) = (stamp(41, 1), stamp(42, 2));

    let text = |text: &str| Value::BulkString(text.into());
    let show = gate.wrap("return {#KEYS, #ARGV, KEYS[1], KEYS[2], ARGV[1]} -- end");
    let seen = vec![Value::Int(2), Value::Int(1), text(KEY), text("{7}b"), text("x")];
    let shown = show.call_with_others(KEY, [KEY], ["{7}b"], ["x"], older).await;
    assert_eq!(shown, Ok(Value::Array(seen)));
    for name in ["stamp", "watermark", "verdict", "body"] {
        let none: [&str; 0] = [];
        let answer = gate.wrap(&format!("return {name}")).call(KEY, none, none, older).await;
        // To Redis it is a global that nobody has made.
        assert!(matches!(answer, Err(GateError::Body(_))), "{name}: {answer:?}");
    }

    for (body, answer) in [
        ("", Value::Nil),
        ("return nil", Value::Nil),
        ("return false", Value::Nil),
        ("return #KEYS + #ARGV", Value::Int(0)),
        ("return redis.call('SET', 'k{7}', 'v')", Value::Okay),
        ("return {1, {2}}", Value::Array(vec![Value::Int(1), Value::Array(vec![Value::Int(2)])])),
        ("if #KEYS == 0 then return 'early' end\nreturn 'late'", text("early")),
    ] {
        let none: [&str; 0] = [];
        assert_eq!(gate.wrap(body).call(KEY, none, none, older).await, Ok(answer), "{body}");
    }

    let take = gate.wrap("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    assert_eq!(take.call(KEY, [KEY], ["5"], newer).await, Ok(Value::Int(5)));
    assert_eq!(take.call(KEY, [KEY], ["5"], older).await, Err(stale(older, newer)));
    assert_eq!(get(&server, KEY).as_deref(), Some("5"));
}

#[tokio::test]
async fn a_wrapped_script_that_fails_is_told_apart_and_lets_no_older_writer_in() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let none: [&str; 0] = [];
    assert_eq!(gate.advance(KEY, older).await, Ok(Admitted::First));
    for (body, words) in [
        ("return redis.error_reply('SOLD out')", "SOLD out"),
        ("\n\nerror('no stock')", "user_script:3: no stock"),
        ("error({code = 7})", "table"),
        ("redis.call('SET', 'x', 'half{7}') return redis.call('INCR', 'x')", "not an integer"),
    ] {
        let failed = gate.wrap(body).call(KEY, none, none, newer).await;
        let Err(GateError::Body(BodyError { resource, message })) = failed else {
            panic!("{body}: {failed:?}")
        };
        assert_eq!(&*resource, KEY);
        assert!(message.contains(words), "{body}: {message}");
        assert_eq!(gate.set(KEY, "stale", older).await, Err(stale(older, newer)), "{body}");
    }

    for body in ["return (", "#!lua name=shebang\nreturn 1", "end end"] {
        let broken = gate.wrap(body).call(KEY, none, none, stamp(43, 3)).await;
        let Err(GateError::Body(error)) = broken else { panic!("{body}: {broken:?}") };
        assert!(error.message.contains("compiling"), "{error}");
    }
    assert_eq!(get(&server, WATERMARK), Some(newer.to_string()), "none of them has run");
}

#[tokio::test]
async fn a_corrupt_watermark_stops_everybody_and_is_not_taken_for_a_stale_fence() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    server.command(&["SET", KEY, "precious"]);
    let lease = stamp(1, 1).lease.to_string();
    for watermark in [
        String::new(),
        "41".into(),
        "forty-one".into(),
        format!("041 {lease}"),
        format!("9007199254740992 {lease}"),
        format!("99999999999999999999 {lease}"),
        format!("41 {lease}\n"),
        format!("41  {lease}"),
        format!("41 {lease}99999999999999999999"),
        "41 1-2-3-4-5:6".into(),
        "x".repeat(1000),
    ] {
        server.command(&["SET", WATERMARK, &watermark]);
        let outcome = gate.set(KEY, "damage", stamp(40, 1)).await;
        assert_eq!(store_kind(outcome), StoreErrorKind::Corrupt, "{watermark:?}");
        assert_eq!(get(&server, WATERMARK), Some(watermark));
    }
    server.command(&["SET", WATERMARK, "1720000000000000"]);
    let error = gate.set(KEY, "damage", stamp(40, 1)).await.unwrap_err().to_string();
    assert!(error.contains("\"1720000000000000\", which is not the stamp"), "{error}");
    server.command(&["DEL", WATERMARK]);
    server.command(&["HSET", WATERMARK, "a", "b"]);
    let outcome = gate.set(KEY, "damage", stamp(40, 1)).await;
    assert_eq!(store_kind(outcome), StoreErrorKind::Corrupt);
    assert_eq!(get(&server, KEY).as_deref(), Some("precious"));
}

#[tokio::test]
async fn a_watermark_lives_for_ever_unless_it_is_given_a_time() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let left = |key| server.query::<i64>(&["PTTL", key]);

    assert_eq!(gate.set(KEY, "a", older).await, Ok(Admitted::First));
    assert_eq!(left(WATERMARK), -1);
    let mortal = gate.clone().watermark_ttl(Duration::from_secs(60)).expect("in range");
    assert_eq!(mortal.set(KEY, "b", newer).await, Ok(Admitted::Newer));
    assert!((50_000..=60_000).contains(&left(WATERMARK)));
    assert_eq!(left(KEY), -1);
    server.command(&["PEXPIRE", WATERMARK, "10000"]);
    assert_eq!(mortal.advance(KEY, newer).await, Ok(Admitted::Again));
    assert!(left(WATERMARK) > 50_000, "every admission extends it");
    assert_eq!(mortal.set(KEY, "stale", older).await, Err(stale(older, newer)));

    // The documented trap: forgotten is forgotten.
    server.command(&["DEL", WATERMARK]);
    assert_eq!(mortal.set(KEY, "stale", older).await, Ok(Admitted::First));

    for refused in [Duration::ZERO, Duration::from_millis(999), Duration::MAX] {
        let error = gate.clone().watermark_ttl(refused).expect_err("out of range").to_string();
        assert!(error.contains("watermark ttl") && error.contains("between 1s"), "{error}");
    }
}

#[tokio::test]
async fn missing_rights_are_a_matter_of_configuration_and_come_before_any_write() {
    let server = RedisServer::start();
    for (user, rights) in [
        ("blind", &["~stock:*", "-@all", "+evalsha", "+eval", "+get"][..]),
        ("elsewhere", &["~elsewhere:*", "+@all"]),
        ("halfway", &["~stock:*:watermark", "+@all"]),
    ] {
        let rule = ["ACL", "SETUSER", user, "on", ">secret"];
        server.command(&[&rule[..], rights].concat());
        let gate = gate_at(&server.url_with(user, "secret", 0));
        let wrapped = gate.wrap("return redis.call('SET', KEYS[1], ARGV[1])");
        let outcome = gate.set(KEY, "x", stamp(41, 1)).await;
        let shown = format!("{outcome:?}");
        assert_eq!(store_kind(outcome), StoreErrorKind::Config, "{user}");
        assert!(!shown.contains("secret"), "{shown}");
        let outcome = wrapped.call(KEY, [KEY], ["x"], stamp(41, 1)).await;
        assert_eq!(store_kind(outcome), StoreErrorKind::Config, "{user}");
        assert_eq!(server.query::<i64>(&["DBSIZE"]), 0, "{user}");
    }
}

#[tokio::test]
async fn a_server_that_fails_is_never_taken_for_a_successor() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    assert_eq!(gate.set(KEY, "a", older).await, Ok(Admitted::First));

    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(store_kind(gate.set(KEY, "b", older).await), StoreErrorKind::Definite);
    let none: [&str; 0] = [];
    let wrapped = gate.wrap("return 1").call(KEY, none, none, newer).await;
    assert_eq!(store_kind(wrapped), StoreErrorKind::Definite);
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);

    server.stop_signal();
    let unknown = gate.set(KEY, "c", older).await;
    server.cont_signal();
    // Sent and not answered, or not even sent.
    assert!(store_kind(unknown).is_transient());
    assert_eq!(gate.set(KEY, "c", older).await, Ok(Admitted::Again), "repeating tells");
    assert_eq!(gate.set(KEY, "d", newer).await, Ok(Admitted::Newer));
    assert_eq!(gate.set(KEY, "c", older).await, Err(stale(older, newer)));
    assert_eq!(get(&server, KEY).as_deref(), Some("d"));

    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(gate.set(KEY, "e", newer).await, Ok(Admitted::Again));

    server.kill();
    let gone = gate.set(KEY, "f", newer).await;
    assert_ne!(store_kind(gone), StoreErrorKind::Corrupt);
    assert_eq!(store_kind(gate.set(KEY, "f", newer).await), StoreErrorKind::Definite);
}

#[tokio::test]
async fn a_resource_without_a_possible_watermark_is_refused_before_anything_is_sent() {
    // Nobody listens there.
    let gate = gate_at("redis+unix:///nowhere/redis.sock");
    let refused = |error: ResourceError| Err(GateError::Resource(error));
    assert_eq!(gate.set("", "x", stamp(1, 1)).await, refused(ResourceError::Empty));
    let brace = ResourceError::BreaksHashTag("}x".into());
    assert_eq!(gate.advance("}x", stamp(1, 1)).await, refused(brace));
    let nul = ResourceError::ContainsNul("a\0b".into());
    assert_eq!(gate.set("a\0b", "x", stamp(1, 1)).await, refused(nul));
}
