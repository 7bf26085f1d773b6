//! Answers, most of which begin as those of the scripts do.

use leasehold_core::StoreError;
use proptest::{collection::vec, prelude::*, sample::select};
use redis::Value;

/// Asserts that an error is short enough to be read.
pub(crate) fn is_short<T>(outcome: Result<T, StoreError>) {
    if let Err(error) = outcome {
        let words = error.to_string();
        assert!(words.chars().count() < 2_000, "{} characters", words.chars().count());
    }
}

/// How many answers are tried.
pub(crate) fn config() -> ProptestConfig {
    let mut config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 3_000;
    }
    config
}

const WORDS: [&str; 23] = [
    "granted",
    "busy",
    "queued",
    "withdrawn",
    "held",
    "gone",
    "released",
    "kept",
    "next-granted",
    "next-queued",
    "free",
    "layout",
    "exhausted",
    "refused",
    "ended",
    "changed",
    "settled",
    "out",
    "wanted",
    "force-released",
    "first",
    "stale",
    "corrupt",
];

const PARTS: [&str; 14] = [
    "b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7",
    "b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:18446744073709551615",
    "B8A5B1E6-5A0E-4B5B-9D7E-0C6F3D1C2A10:7",
    "0",
    "1",
    "-1",
    "1700000000000001",
    "9007199254740991",
    "9007199254740992",
    "18446744073709551615",
    "18446744073709551616",
    "4294967296",
    "",
    "~host/1/a b",
];

/// A text of a server, sometimes a long one.
pub(crate) fn text() -> impl Strategy<Value = String> {
    let fields = vec(("[a-z_]{0,12}", "[:= ,]{0,2}", select(&PARTS[..])), 0..12);
    let fields = fields.prop_map(|fields| {
        let line =
            |(name, between, value): (String, String, &str)| format!("{name}{between}{value}\r\n");
        fields.into_iter().map(line).collect::<String>()
    });
    let long = (".{1,3}", 0..20_000_usize).prop_map(|(unit, times)| unit.repeat(times));
    prop_oneof![
        4 => ".{0,40}",
        4 => "[0-9 :?.\\-]{0,30}",
        4 => fields,
        4 => select(&PARTS[..]).prop_map(str::to_owned),
        1 => long,
    ]
}

/// A message on the channel of a runtime.
pub(crate) fn push_text() -> impl Strategy<Value = String> {
    (select(&WORDS[..]), vec(text_part(), 0..12)).prop_map(|(word, parts)| {
        [word.to_owned()].into_iter().chain(parts).collect::<Vec<_>>().join(" ")
    })
}

fn text_part() -> impl Strategy<Value = String> {
    prop_oneof![8 => select(&PARTS[..]).prop_map(str::to_owned), 1 => ".{0,9}"]
}

fn number() -> impl Strategy<Value = i64> {
    let edges = [i64::MIN, -1, 0, 1, 16_383, 16_384, 65_535, 65_536, i64::MAX];
    prop_oneof![select(edges.to_vec()), any::<i64>(), 0..20_000_i64]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Nil),
        Just(Value::Okay),
        any::<bool>().prop_map(Value::Boolean),
        any::<f64>().prop_map(Value::Double),
        number().prop_map(Value::Int),
        number().prop_map(Value::Int),
        text().prop_map(Value::SimpleString),
        text().prop_map(|text| Value::BulkString(text.into_bytes())),
        text_part().prop_map(|text| Value::BulkString(text.into_bytes())),
        vec(any::<u8>(), 0..60).prop_map(Value::BulkString),
        vec(number(), 0..4).prop_map(|numbers| {
            let words: Vec<_> = numbers.iter().map(i64::to_string).collect();
            Value::BulkString(words.join(" ").into_bytes())
        }),
    ]
}

/// Any value of the protocol.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 40, 10, |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 0..14).prop_map(Value::Array),
            1 => vec(inner.clone(), 0..6).prop_map(Value::Set),
            1 => vec((inner.clone(), inner), 0..6).prop_map(Value::Map),
        ]
    })
}

/// What a script could answer.
pub(crate) fn replies() -> impl Strategy<Value = Value> {
    let worded = (select(&WORDS[..]), vec(value(), 0..13)).prop_map(|(word, parts)| {
        let word = Value::BulkString(word.as_bytes().into());
        Value::Array([word].into_iter().chain(parts).collect())
    });
    prop_oneof![6 => worded, 2 => as_held(), 1 => value()]
}

/// The look at a lock that is held, with one thing or another wrong.
fn as_held() -> impl Strategy<Value = Value> {
    let part = || prop_oneof![2 => text_part().prop_map(|text| Value::BulkString(text.into_bytes())), 1 => leaf()];
    let waiters = vec(part(), 0..13).prop_map(Value::Array);
    (number(), part(), waiters, vec(part(), 6), number(), number()).prop_map(
        |(left, now, waiters, parts, kept, keeps)| {
            let head = [Value::BulkString(b"held".into()), Value::Int(left), now, waiters];
            let flags = [Value::Int(kept), Value::Int(keeps)];
            Value::Array(head.into_iter().chain(parts).chain(flags).collect())
        },
    )
}

/// What a node could answer to `CLUSTER SLOTS`.
pub(crate) fn slots() -> impl Strategy<Value = Value> {
    let node =
        (leaf(), number()).prop_map(|(host, port)| Value::Array(vec![host, Value::Int(port)]));
    let range = (number(), number(), vec(node, 0..3)).prop_map(|(first, last, nodes)| {
        Value::Array([Value::Int(first), Value::Int(last)].into_iter().chain(nodes).collect())
    });
    prop_oneof![4 => vec(range, 0..6).prop_map(Value::Array), 1 => value()]
}
