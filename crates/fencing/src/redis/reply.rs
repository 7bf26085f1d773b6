use leasehold_core::{Stamp, StoreError, StoreErrorKind};
use redis::Value;

use crate::{
    error::{BodyError, GateError, not_a_stamp},
    gate::{Admitted, Refusals},
};

/// Whether a gate's script has admitted the stamp, and so has written.
pub(super) fn is_admitted(reply: &Value) -> bool {
    let Value::Array(parts) = reply else { return false };
    parts.first().is_some_and(|word| admitted(&text(word)).is_some())
}

fn admitted(word: &str) -> Option<Admitted> {
    match word {
        "first" => Some(Admitted::First),
        "newer" => Some(Admitted::Newer),
        "again" => Some(Admitted::Again),
        _ => None,
    }
}

/// Reads the answer of a gate's script: the verdict, and the answer of a wrapped script.
pub(super) fn read(
    reply: Value,
    resource: &str,
    presented: Stamp,
    refusals: &Refusals,
) -> Result<(Admitted, Value), GateError> {
    let Value::Array(parts) = reply else { return Err(not_understood(resource, &reply).into()) };
    let mut parts = parts.into_iter();
    let (word, more) = (parts.next().unwrap_or(Value::Nil), parts.next().unwrap_or(Value::Nil));
    let verdict = text(&word);
    if let Some(admitted) = admitted(&verdict) {
        refusals.admitted();
        return Ok((admitted, more));
    }
    Err(match verdict.as_str() {
        "stale" => {
            let highest = text(&more).parse().map_err(|_| corrupt(resource, &more))?;
            refusals.refuse(resource, presented, highest).into()
        }
        "failed" => failed(resource, &text(&more)).into(),
        "corrupt" => corrupt(resource, &more).into(),
        _ => not_understood(resource, &word).into(),
    })
}

/// The error of a call without an answer. If a script does not compile, the error is the caller's.
pub(super) fn unanswered(error: StoreError, resource: &str) -> GateError {
    if error.what().contains("Error compiling script") {
        return failed(resource, error.what()).into();
    }
    error.for_resource(resource).into()
}

fn failed(resource: &str, message: &str) -> BodyError {
    BodyError { resource: resource.into(), message: message.into() }
}

fn corrupt(resource: &str, watermark: &Value) -> StoreError {
    not_a_stamp(&format!("{:?}", text(watermark)), resource)
}

fn not_understood(resource: &str, reply: &Value) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!("the server's answer {reply:?} is not understood"),
        "use no proxy that rewrites scripts",
    )
    .for_resource(resource)
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testing::stamp;
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;

    use crate::error::StaleFence;

    fn read_parts(parts: &[&str]) -> Result<(Admitted, Value), GateError> {
        let parts = parts.iter().map(|part| Value::BulkString(part.as_bytes().into())).collect();
        read(Value::Array(parts), "a", stamp(41, 1), &Refusals::new("redis"))
    }

    #[test]
    fn every_answer_has_its_meaning() {
        assert_eq!(read_parts(&["first"]), Ok((Admitted::First, Value::Nil)));
        let answer = Value::BulkString(b"7".to_vec());
        assert_eq!(read_parts(&["newer", "7"]), Ok((Admitted::Newer, answer)));
        let highest = stamp(42, 2);
        let stale = StaleFence { presented: stamp(41, 1), highest, resource: "a".into() };
        assert_eq!(read_parts(&["stale", &highest.to_string()]), Err(stale.into()));
        assert_eq!(read_parts(&["failed", "no"]), Err(failed("a", "no").into()));
        for parts in [&["corrupt", "x"], &["stale", "x"], &["granted", "x"]] {
            let Err(GateError::Store(error)) = read_parts(parts) else { panic!("{parts:?}") };
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert!(error.to_string().contains("the gate of \"a\""), "{error}");
        }
    }

    fn part() -> impl Strategy<Value = Value> {
        const WORDS: [&str; 8] =
            ["first", "newer", "again", "stale", "failed", "corrupt", "41 x", ""];
        prop_oneof![
            4 => select(&WORDS[..]).prop_map(|word| Value::BulkString(word.into())),
            1 => vec(any::<u8>(), 0..300).prop_map(Value::BulkString),
            1 => any::<i64>().prop_map(Value::Int),
            1 => Just(Value::Nil),
        ]
    }

    proptest! {
        #![proptest_config(crate::gate::fuzzed())]

        #[test]
        fn every_answer_is_read(parts in vec(part(), 0..4), alone in part()) {
            for reply in [Value::Array(parts.clone()), alone.clone()] {
                is_admitted(&reply);
                let read = read(reply, "a", stamp(41, 1), &Refusals::new("redis"));
                if let Err(GateError::Store(error)) = read {
                    prop_assert!(error.to_string().chars().count() < 2_000, "{error}");
                }
            }
        }
    }
}
