use serde::{Deserialize, Serialize};

use crate::orders::{Kind, Order};

/// What the storage keeps of an article: how far its orders are done, and the pieces in stock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shelf {
    /// How many of the article's orders are done; the next one has this index.
    pub(crate) next: usize,
    pub(crate) stock: i64,
}

/// An order that is done, as the storage keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Booking {
    /// The order's number in the file.
    pub(crate) order: u32,
    /// The pieces in stock afterwards.
    pub(crate) stock: i64,
    /// Whether there was enough; a sale that finds too little leaves the stock as it is.
    pub(crate) delivered: bool,
    /// The fence of the lease that it was done under.
    pub(crate) fence: u64,
}

impl Shelf {
    /// Works out what an order does to the shelf; nothing is written yet.
    pub(crate) fn apply(self, order: Order, fence: u64) -> Booking {
        let change = match order.kind {
            Kind::Restock => i64::from(order.pieces),
            Kind::Sale => -i64::from(order.pieces),
        };
        let delivered = self.stock + change >= 0;
        let stock = if delivered { self.stock + change } else { self.stock };
        Booking { order: order.number, stock, delivered, fence }
    }
}

/// Everything the storage knows of an article at the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    pub(crate) shelf: Shelf,
    /// The bookings by the index of their order.
    pub(crate) bookings: Vec<Booking>,
    /// How often an order was booked that was booked before.
    pub(crate) twice: u64,
}
