use std::{thread, time::Duration};

use crate::sale::TTL;

/// What happens to a shop in the midst of a sale, between its look at the shelf and its entry in the
/// books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mishap {
    None,
    /// It dies with the lock in its hands.
    Dies,
    /// All of it stands still for longer than its lease lives.
    Stalls,
}

impl Mishap {
    /// After how many sales of the shop.
    pub(crate) const AFTER: usize = 10;
    const STALL: Duration = TTL.saturating_mul(2);

    pub(crate) fn of(shop: usize) -> Self {
        match shop {
            0 => Self::Dies,
            1 => Self::Stalls,
            _ => Self::None,
        }
    }

    /// Stands still, if it is to.
    pub(crate) fn stall(self) {
        if self == Self::Stalls {
            thread::sleep(Self::STALL);
        }
    }
}
