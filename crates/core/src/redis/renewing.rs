use super::lane::Lane;
use crate::clock::{Clock, Instant, within};

/// The connection for renewals; another one if it cannot be made by half of the time, as on a server
/// that takes no more clients. That one may work. It is taken at once if two of its round trips take
/// longer than that half: the first renewal of a process finds its own connection in the making.
///
/// # Cancel safety
///
/// Dropping the future stops no attempt to connect, which the next renewal finds.
pub(super) async fn lane_that_works<'a>(
    own: &'a Lane,
    other: &'a Lane,
    clock: &dyn Clock,
    deadline: Instant,
) -> &'a Lane {
    if own.present().is_some() {
        return own;
    }
    let now = clock.now();
    let half = deadline.saturating_since(now) / 2;
    if other.round_trip().is_some_and(|round_trip| round_trip * 2 > half) {
        own.prepare();
        return other;
    }
    let made = within(clock, now + half, Box::pin(own.connect())).await;
    if matches!(made, Some(Ok(_))) { own } else { other }
}
