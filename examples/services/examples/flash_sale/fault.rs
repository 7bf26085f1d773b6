use std::{thread, time::Duration};

use crate::sale::TTL;

/// What happens to a shop in a sale, after it has read the shelf and before it writes to the books.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// It dies while it holds the lock.
    Dies,
    /// It stalls for longer than its lease lives.
    Stalls,
}

impl Fault {
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

    /// Stalls, if this is its fault.
    pub(crate) fn stall(self) {
        if self == Self::Stalls {
            thread::sleep(Self::STALL);
        }
    }
}
