use std::time::Duration;

/// How many articles there are, and how many pieces of each.
pub(crate) const ARTICLES: usize = 4;
pub(crate) const PIECES: u64 = 60;
/// How many buyers each shop has; each wants one piece of one article, half of them the first one.
pub(crate) const BUYERS: usize = 1_000;
/// How long a sale takes.
pub(crate) const SALE: Duration = Duration::from_millis(1);
pub(crate) const TTL: Duration = Duration::from_secs(1);

/// Which article a buyer wants.
pub(crate) fn wish(buyer: usize) -> usize {
    (1..ARTICLES).find(|article| buyer >> article & 1 == 1).map_or(0, |found| found % ARTICLES)
}

/// What a shop reads from the shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Left(u64),
    /// The storage refused: another holder has the lock by now.
    ShutOut,
}

/// The result of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sale {
    Booked,
    /// The storage refused: another holder has the lock by now.
    ShutOut,
}

/// The books at the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    /// Pieces left of each article.
    pub(crate) left: Vec<u64>,
    /// Sales as article, shop and buyer.
    pub(crate) sales: Vec<(usize, usize, usize)>,
    /// Sales that the storage refused because they came too late.
    pub(crate) refused: u64,
}
