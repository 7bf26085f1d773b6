//! Locks as JSON: times in milliseconds, fences as numbers, ids as texts.

use std::time::Duration;

use leasehold::{
    FenceToken,
    store::{Inspection, LeaseRecord, WaiterRecord},
};
use serde_json::{Value, json};

use crate::{
    ending::Failure,
    output::{Reader, write_out},
};

/// What an inspection of a lock has shown.
pub(crate) fn of_lock(name: &str, seen: &Inspection) -> Value {
    match seen {
        Inspection::Free { last_fence } => json!({
            "name": name,
            "state": "free",
            "last_fence": last_fence.map(FenceToken::get),
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

fn waiter((place, waiter): (usize, &WaiterRecord)) -> Value {
    json!({
        "position": place + 1,
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
pub(crate) fn write(document: &Value) -> Result<Reader, Failure> {
    write_out(format!("{document}\n").as_bytes())
}
