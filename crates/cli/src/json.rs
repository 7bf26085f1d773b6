//! Locks as JSON: times in milliseconds, fences as numbers, ids as texts.

use std::{fmt::Write, time::Duration};

use leasehold::{
    Fence, is_printable,
    store::{Inspection, LeaseRecord, WaiterRecord},
};
use serde_json::{Value, json};

use crate::{
    ending::CliError,
    output::{ReaderState, write_out},
};

/// What an inspection of a lock has shown.
pub(crate) fn of_lock(name: &str, seen: &Inspection) -> Value {
    match seen {
        Inspection::Free { last_fence } => json!({
            "name": name,
            "state": "free",
            "last_fence": last_fence.map(Fence::get),
            "holder": null,
            "waiters": [],
        }),
        Inspection::Held(lease) => of_lease(name, lease),
    }
}

/// A lock that is held, or kept closed.
pub(crate) fn of_lease(name: &str, lease: &LeaseRecord) -> Value {
    json!({
        "name": name,
        "state": state(lease),
        "last_fence": null,
        "holder": holder(lease),
        "waiters": lease.waiters.iter().enumerate().map(waiter).collect::<Vec<_>>(),
    })
}

/// The state of a held lock as one word.
pub(crate) fn state(lease: &LeaseRecord) -> &'static str {
    match (lease.kept, lease.idle) {
        (true, _) => "kept",
        (false, true) => "idle",
        (false, false) => "held",
    }
}

pub(crate) fn holder(lease: &LeaseRecord) -> Value {
    json!({
        "label": lease.label,
        "lease": lease.id.to_string(),
        "fence": lease.fence.get(),
        "holds": lease.holds,
        "held_for_ms": millis(lease.held_for),
        "ttl_left_ms": millis(lease.remaining),
        "keeps_idle": lease.keeps,
    })
}

fn waiter((index, waiter): (usize, &WaiterRecord)) -> Value {
    json!({
        "position": index + 1,
        "label": waiter.label,
        "acquisition": waiter.id.to_string(),
        "waiting_for_ms": millis(waiter.waiting_for),
        "silent_for_ms": millis(waiter.silent_for),
    })
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a document in one line.
pub(crate) fn write(document: &Value) -> Result<ReaderState, CliError> {
    write_out(format!("{}\n", escaped(&document.to_string())).as_bytes())
}

/// Escapes, as JSON allows, what a terminal or a line reader would act on.
fn escaped(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    for c in document.chars() {
        // Only texts have such characters, and JSON writes one of the basic plane as `\u` and its number.
        if is_printable(c) {
            text.push(c);
        } else {
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_takes_for_more_is_escaped_and_read_back() {
        let name = "a\u{1b}[2J\u{7f}\u{85}\u{9b}\u{2028}\u{202e}é";
        let text = escaped(&json!({ "name": name }).to_string());
        assert!(text.chars().all(is_printable), "{text:?}");
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["name"], name);
    }
}
