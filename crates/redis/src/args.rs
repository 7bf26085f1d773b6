//! Numbers as scripts take them.

use std::time::Duration;

use leasehold_core::Fence;

/// A time in whole milliseconds.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A watermark, or 0 for none.
pub(super) fn watermark(seen: Option<Fence>) -> u64 {
    seen.map_or(0, Fence::get)
}
