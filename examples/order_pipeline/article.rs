use crate::orders::Order;

/// Something that is ordered: a lock, a shelf, and its orders in the sequence of the file.
#[derive(Debug)]
pub(crate) struct Article {
    pub(crate) name: String,
    pub(crate) orders: Vec<Order>,
}

impl Article {
    /// From this many orders on, an article is hot.
    const HOT: usize = 100;

    /// The class of its lock in metrics: a few words for many locks.
    pub(crate) fn class(&self) -> &'static str {
        if self.is_hot() { "hot" } else { "cold" }
    }

    pub(crate) fn is_hot(&self) -> bool {
        self.orders.len() >= Self::HOT
    }

    /// The name of the lock that whoever touches its shelf must hold.
    pub(crate) fn lock_name(&self) -> String {
        format!("order_pipeline/article/{}", self.name)
    }
}
