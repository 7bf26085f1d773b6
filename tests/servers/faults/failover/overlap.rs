//! Two holders at two masters.

use std::time::Duration;

use leasehold::{
    Guard,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{Event, History, Violation};

use crate::faults::server::scene::{FIRST, SECOND};

/// For how long two holders believe from now on.
pub(in crate::faults) fn of(first: &Guard, second: &Guard) -> Duration {
    let now = SystemClock.now();
    let granted = |worker, guard: &Guard| {
        let (fence, lease) = (guard.fence(), guard.id());
        let granted = Event::Granted { worker, fence, lease, asked_at: now, granted_at: now };
        [granted, Event::BelievedUntil { lease, until: now + guard.remaining() }]
    };
    let events = [granted(FIRST, first), granted(SECOND, second)];
    let history: History = events.into_iter().flatten().collect();
    let found = history.check_strictly().expect_err("the control came to no harm");
    let overlap = found.iter().find_map(|violation| match violation {
        Violation::TwoBelievers(overlap) => Some(overlap.by),
        _ => None,
    });
    overlap.unwrap_or_else(|| panic!("{found:#?}"))
}
