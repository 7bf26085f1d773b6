//! What a fenced script answers, and which keys it may have.

use leasehold_core::StoreErrorKind;
use leasehold_fencing::{GateError, ResourceError};
use leasehold_testkit::RedisServer;
use redis::Value;

use super::{KEY, gate_at, get, stale, stamp};

const NONE: [&str; 0] = [];

/// Only an error that *is* the answer is a failure: what is nested in one is part of it.
#[tokio::test]
async fn an_error_inside_an_answer_is_a_part_of_the_answer() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let sell = gate.wrap(
        "return {redis.call('INCR', KEYS[1]), redis.error_reply('LOADING the next part'), \
         {redis.error_reply('SOLD out')}}",
    );
    let answer = sell.call(KEY, [KEY], NONE, stamp(41, 1)).await;
    let Ok(Value::Array(parts)) = &answer else { panic!("{answer:?}") };
    assert_eq!(parts[0], Value::Int(1));
    assert!(matches!(&parts[1], Value::ServerError(error) if error.code() == "LOADING"));
    let Value::Array(inner) = &parts[2] else { panic!("{answer:?}") };
    assert!(matches!(&inner[0], Value::ServerError(error) if error.code() == "SOLD"));
    assert_eq!(get(&server, KEY).as_deref(), Some("1"));
}

#[tokio::test]
async fn a_script_that_answers_noscript_runs_once() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let body = "local n = redis.call('INCR', KEYS[1]) return {redis.error_reply('NOSCRIPT x'), n}";
    let twice = gate.wrap(body);
    for expected in 1..=2 {
        let answer = twice.call(KEY, [KEY], NONE, stamp(41, 1)).await;
        assert!(matches!(&answer, Ok(Value::Array(_))), "{answer:?}");
        assert_eq!(get(&server, KEY), Some(expected.to_string()));
    }
    // At the top it is the script's own failure, and it has run once as well.
    let failing = gate.wrap("redis.call('INCR', KEYS[1]) return redis.error_reply('NOSCRIPT x')");
    let answer = failing.call(KEY, [KEY], NONE, stamp(41, 1)).await;
    assert!(matches!(answer, Err(GateError::Body(_))), "{answer:?}");
    assert_eq!(get(&server, KEY).as_deref(), Some("3"));
}

/// The damage: a key that is written behind two gates is guarded by neither.
#[tokio::test]
async fn a_key_of_another_resource_is_refused_unless_it_is_named_as_one() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let write = gate.wrap("return redis.call('SET', KEYS[1], ARGV[1])");
    assert!(write.call(KEY, [KEY], ["newer"], newer).await.is_ok());
    assert_eq!(write.call(KEY, [KEY], ["late"], older).await, Err(stale(older, newer)));

    // The control arm: told by name, the older one gets in through the gate of another resource.
    let other = "log:{7}";
    assert!(write.call_with_others(other, NONE, [KEY], ["late"], older).await.is_ok());
    assert_eq!(get(&server, KEY).as_deref(), Some("late"));

    server.command(&["SET", KEY, "newer"]);
    for (resource, key) in [(other, KEY), (other, "log:{7}x"), (other, "log:{7"), (other, "log")] {
        let refused = ResourceError::ForeignKey { key: key.into(), resource: resource.into() };
        let answer = write.call(resource, [key], ["late"], older).await;
        assert_eq!(answer, Err(GateError::Resource(refused)), "{key}");
    }
    assert_eq!(get(&server, KEY).as_deref(), Some("newer"));
    // Parts of the resource are its own.
    assert!(write.call(other, ["log:{7}:today"], ["x"], older).await.is_ok());
}

#[tokio::test]
async fn the_watermark_of_another_value_is_no_value() {
    let server = RedisServer::start();
    let gate = gate_at(&server.url());
    let (older, newer) = (stamp(41, 1), stamp(42, 2));
    let write = gate.wrap("return redis.call('SET', KEYS[1], ARGV[1])");
    for (value, watermark) in [("b", "watermark:{b}"), (KEY, "stock:{7}:watermark")] {
        assert!(gate.set(value, "newer", newer).await.is_ok());
        let refused: GateError = ResourceError::IsWatermark(watermark.into()).into();
        for text in [older.to_string(), "broken".to_owned()] {
            assert_eq!(gate.set(watermark, text, older).await, Err(refused.clone()));
        }
        for keys in [[watermark], [KEY]] {
            let of = if keys == [KEY] { watermark } else { value };
            let answer = write.call(of, keys, ["x"], older).await;
            assert_eq!(answer, Err(refused.clone()), "{keys:?}");
        }
        let answer = write.call_with_others(value, NONE, [watermark], ["x"], newer).await;
        assert_eq!(answer, Err(refused));
        let late = gate.set(value, "late", older).await;
        assert!(matches!(late, Err(GateError::Stale(_))), "{late:?}");
    }

    // The control arm: a write there without the gate lets the older one in.
    server.command(&["SET", "watermark:{b}", &stamp(1, 9).to_string()]);
    assert!(gate.set("b", "late", older).await.is_ok());
    assert_eq!(get(&server, "b").as_deref(), Some("late"));
    server.command(&["SET", "watermark:{b}", "broken"]);
    let broken = gate.set("b", "x", newer).await;
    assert!(matches!(&broken, Err(GateError::Store(e)) if e.kind() == StoreErrorKind::Corrupt));
}
