use std::time::Duration;

use leasehold_core::{StoreError, printable, store::WaiterRecord};
use leasehold_redis::decode::{id, layout_trouble, not_understood, shown, text};
use redis::Value;

use crate::{Busy, NodeAnswer, NodeLease, NodeReply, Vote, Word};

/// What a node's answer to a command means.
pub(super) fn answer(word: &Word, value: &Value) -> NodeReply {
    let understood = match value {
        Value::Int(number) => of_number(word, u64::try_from(*number).ok()),
        // Beside answers that are lists.
        Value::BulkString(digits) => {
            of_number(word, str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()))
        }
        Value::Array(parts) => return of_parts(parts, value),
        _ => None,
    };
    understood.ok_or_else(|| not_understood(&shown(value)))
}

/// The answers that are usual.
fn of_number(word: &Word, number: Option<u64>) -> Option<NodeAnswer> {
    let number = number?;
    Some(match word {
        // The last token before a grant that is as usual.
        Word::Ask { ttl, .. } if number > 0 => {
            let remaining = *ttl;
            let (before, accepted, least, contended, now) = (number, true, 0, false, 0);
            NodeAnswer::Granted(Vote { before, accepted, least, remaining, contended, now })
        }
        Word::End { .. } if number == 1 => NodeAnswer::Ended { counter: 0 },
        Word::Settle { .. } | Word::Renew { .. } | Word::Spread { .. } | Word::Hold { .. }
            if number > 0 =>
        {
            NodeAnswer::Held { remaining: millis(number), contended: false }
        }
        _ if number == 0 => NodeAnswer::Gone,
        _ => return None,
    })
}

fn of_parts(parts: &[Value], whole: &Value) -> NodeReply {
    let word = parts.first().and_then(text).unwrap_or_default();
    match &*word {
        "layout" => return Err(layout_trouble(&parts.get(1).and_then(text).unwrap_or_default())),
        "exhausted" => return Err(StoreError::exhausted()),
        _ => {}
    }
    let understood = match &*word {
        "granted" => granted(parts),
        "busy" => busy(parts),
        "withdrawn" => number(parts, 1).map(|ended| NodeAnswer::Withdrawn { ended: ended == 1 }),
        "settled" => number(parts, 1)
            .map(|left| NodeAnswer::Held { remaining: millis(left), contended: true }),
        "kept" => number(parts, 1).map(|left| NodeAnswer::Kept { remaining: millis(left) }),
        "ended" => number(parts, 1).map(|counter| NodeAnswer::Ended { counter }),
        "free" => number(parts, 1).map(|counter| NodeAnswer::Free { counter }),
        "held" => held(parts).map(|lease| NodeAnswer::Record(Box::new(lease))),
        "out" => match parts.get(1) {
            Some(Value::Int(left)) => {
                Some(NodeAnswer::Out { rest: u64::try_from(*left).ok().map(millis) })
            }
            _ => None,
        },
        _ => None,
    };
    understood.ok_or_else(|| not_understood(&shown(whole)))
}

fn granted(parts: &[Value]) -> Option<NodeAnswer> {
    Some(NodeAnswer::Granted(Vote {
        before: number(parts, 1)?,
        accepted: number(parts, 2)? == 1,
        least: number(parts, 3)?,
        remaining: millis(number(parts, 4)?),
        contended: number(parts, 5)? == 1,
        now: number(parts, 6)?,
    }))
}

fn busy(parts: &[Value]) -> Option<NodeAnswer> {
    Some(NodeAnswer::Busy(Busy {
        remaining: millis(number(parts, 1)?),
        keeps: number(parts, 2)? == 1,
        older: number(parts, 3)?,
        holder: id(parts.get(4)?),
        waited: Duration::from_micros(number(parts, 5)?),
        now: number(parts, 6)?,
    }))
}

fn held(parts: &[Value]) -> Option<NodeLease> {
    Some(NodeLease {
        id: id(parts.get(1)?)?,
        attempt: number(parts, 2)?,
        fence: number(parts, 3)?,
        before: number(parts, 4)?,
        holds: u32::try_from(number(parts, 5)?).ok()?,
        remaining: millis(number(parts, 6)?),
        label: printable(&text(parts.get(7)?)?).into_owned(),
        held_for: Duration::from_micros(number(parts, 8)?),
        kept: number(parts, 9)? == 1,
        waiters: waiters(parts.get(10)?)?,
    })
}

fn waiters(list: &Value) -> Option<Vec<WaiterRecord>> {
    let Value::Array(list) = list else { return None };
    let waiter = |one: &Value| {
        let Value::Array(parts) = one else { return None };
        Some(WaiterRecord {
            id: id(parts.first()?)?,
            waiting_for: Duration::from_micros(number(parts, 1)?),
            silent_for: millis(number(parts, 2).unwrap_or(0)),
            label: printable(&text(parts.get(3)?)?).into_owned(),
        })
    };
    list.iter().map(waiter).collect()
}

/// A number, as such or as text.
fn number(parts: &[Value], at: usize) -> Option<u64> {
    match parts.get(at)? {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::BulkString(digits) => str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

fn millis(number: u64) -> Duration {
    Duration::from_millis(number)
}

#[cfg(test)]
mod tests {
    use leasehold_core::RuntimeLabel;
    use leasehold_redis::Dialect;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        driver::dialect::NodeDialect,
        values::{config, is_short, replies},
    };

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn every_answer_is_read(reply in replies()) {
            let (attempt, fence, ttl) = (1, 0, Duration::from_secs(30));
            let ask = Word::Ask {
                attempt,
                ballot: 1,
                ttl,
                waited: Duration::ZERO,
                heard: Duration::ZERO,
                label: RuntimeLabel::new("label"),
                keeps: false,
            };
            let end = Word::End { attempt, fence, marks: false };
            for word in [ask, end, Word::Renew { attempt, fence, ttl }, Word::Inspect] {
                is_short(answer(&word, &reply));
            }
            NodeDialect::answers(reply);
        }
    }
}
