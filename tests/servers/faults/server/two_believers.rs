//! Two holders of naive locks, and for how long both believe.

use leasehold::time::{Clock, SystemClock};
use leasehold_testkit::{Event, History, Violation};

use super::scene::{FIRST, SECOND};
use crate::support::naive::NaiveHeld;

/// Says for how long both believe in what they have, the second as of now.
pub(in crate::faults) fn overlap(first: &NaiveHeld, second: &NaiveHeld) -> String {
    let granted = |worker, held: &NaiveHeld, granted_at| {
        let NaiveHeld { lease, fence, asked_at, until } = *held;
        [
            Event::Granted { worker, fence, lease, asked_at, granted_at },
            Event::BelievedUntil { lease, until },
        ]
    };
    let events =
        [granted(FIRST, first, first.asked_at), granted(SECOND, second, SystemClock.now())];
    let history: History = events.into_iter().flatten().collect();
    let found = history.check_strictly().expect_err("the control came to no harm");
    let overlap = found.iter().find_map(|violation| match violation {
        Violation::TwoBelievers(overlap) => Some(overlap.by),
        _ => None,
    });
    let by = overlap.unwrap_or_else(|| panic!("{found:#?}"));
    format!("two holders believed for {} ms", by.as_millis())
}
