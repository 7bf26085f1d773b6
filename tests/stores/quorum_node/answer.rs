//! Answers as texts that can be compared. Of a grant whose ballot was accepted the least acceptable number
//! and the time are left out, as the script does.

use std::time::Duration;

use leasehold_core::store::Push;
use leasehold_quorum::{Busy, NodeAnswer, NodeCommand, NodeLease, Vote, Word};
use redis::Value;

fn text(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Array(parts) => parts.iter().map(text).collect::<Vec<_>>().join(","),
        other => format!("{other:?}"),
    }
}

/// What a script has answered.
pub(super) fn of_script(command: &NodeCommand, value: &Value) -> String {
    match value {
        Value::Int(0) => "gone".to_owned(),
        Value::Int(before) if matches!(command.word, Word::Ask { .. }) => {
            let Word::Ask { ttl, .. } = command.word else { return text(value) };
            format!("granted {before} 1 - {} 0 -", ttl.as_millis())
        }
        Value::Int(1) if matches!(command.word, Word::End { .. }) => "ended 0".to_owned(),
        Value::Int(left) => format!("held {left}"),
        Value::Array(parts) => {
            let mut parts: Vec<_> = parts.iter().map(text).collect();
            if parts[0] == "granted" && parts[2] == "1" {
                parts[3] = "-".into();
                parts[6] = "-".into();
            }
            parts.join(" ")
        }
        other => format!("{other:?}"),
    }
}

fn millis(time: Duration) -> u128 {
    time.as_millis()
}

/// What the simulation has answered.
pub(super) fn of_memory(command: &NodeCommand, answer: &NodeAnswer) -> String {
    match answer {
        NodeAnswer::Granted(Vote { before, accepted, least, remaining, contended, now }) => {
            let of_refused =
                |number: &u64| if *accepted { "-".to_owned() } else { number.to_string() };
            let (least, now) = (of_refused(least), of_refused(now));
            let (accepted, contended) = (u8::from(*accepted), u8::from(*contended));
            format!("granted {before} {accepted} {least} {} {contended} {now}", millis(*remaining))
        }
        NodeAnswer::Busy(Busy { remaining, keeps, older, holder, now }) => {
            let holder = holder.map_or_else(String::new, |holder| holder.to_string());
            let (remaining, keeps) = (millis(*remaining), u8::from(*keeps));
            format!("busy {remaining} {keeps} {older} {holder} {now}")
        }
        NodeAnswer::Withdrawn { ended } => format!("withdrawn {}", u8::from(*ended)),
        NodeAnswer::Held { remaining, contended } => {
            let is_told = *contended && matches!(command.word, Word::Settle { .. });
            format!("{} {}", if is_told { "settled" } else { "held" }, millis(*remaining))
        }
        NodeAnswer::Gone => "gone".to_owned(),
        NodeAnswer::Ended { counter } => format!("ended {counter}"),
        NodeAnswer::Kept { remaining } => format!("kept {}", millis(*remaining)),
        NodeAnswer::Free { counter } => format!("free {counter}"),
        NodeAnswer::Record(lease) => of_lease(lease),
        NodeAnswer::Out { rest } => format!("out {rest:?}"),
    }
}

fn of_lease(lease: &NodeLease) -> String {
    let waiters = lease.waiters.iter().map(|one| {
        format!(
            "{},{},{},{}",
            one.id,
            one.waiting_for.as_micros(),
            millis(one.silent_for),
            one.label
        )
    });
    let waiters: Vec<_> = waiters.collect();
    format!(
        "held {} {} {} {} {} {} {} {} {} {}",
        lease.id,
        lease.attempt,
        lease.fence,
        lease.before,
        lease.holds,
        millis(lease.remaining),
        lease.label,
        lease.held_for.as_micros(),
        u8::from(lease.kept),
        waiters.join(",")
    )
}

/// What a node has told a runtime.
pub(super) fn of_push(push: &Push) -> String {
    let (word, name, id, fence) = match push {
        Push::Wanted { name, id, fence } => ("wanted", name, id, fence),
        Push::ForceReleased { name, id, fence } => ("force-released", name, id, fence),
        other => return format!("{other:?}"),
    };
    format!("runtime:{} {word} {id} {fence} {name}", id.runtime())
}
