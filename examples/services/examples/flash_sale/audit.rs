use std::collections::BTreeSet;

use leasehold_services::Outcome;

use crate::sale::{ARTICLES, Books, PIECES};

/// Checks the books.
pub(crate) fn audit(books: &Books) -> Outcome {
    let of = |article| books.sales.iter().filter(|sale| sale.0 == article).count() as u64;
    let oversold = (0..ARTICLES).filter(|article| of(*article) > PIECES).count();
    let undersold = (0..ARTICLES).filter(|article| of(*article) < PIECES).count();
    let buyers: BTreeSet<_> = books.sales.iter().map(|(_, shop, buyer)| (shop, buyer)).collect();
    Outcome::new()
        .fact("articles", ARTICLES)
        .fact("pieces sold", books.sales.len())
        .fact("stale sales refused", books.refused)
        .holds("no article is oversold", oversold == 0)
        .holds("no article is undersold", undersold == 0)
        .holds("nothing is left on the shelf", books.left.iter().all(|left| *left == 0))
        .holds("nobody has bought twice", buyers.len() == books.sales.len())
}
