//! Where the pieces are, and the books.

mod memory;
mod postgres;

use std::sync::Arc;

use leasehold::Stamp;
pub(crate) use memory::MemoryShelf;
pub(crate) use postgres::PostgresShelf;

use crate::{
    Failure,
    sale::{Look, Sale},
};

/// A shelf that compares fences.
#[derive(Debug, Clone)]
pub(crate) enum Shelf {
    Memory(Arc<MemoryShelf>),
    Postgres(PostgresShelf),
}

impl Shelf {
    /// Reads how many pieces there are, and shuts out all former holders of the lock.
    pub(crate) async fn look(&self, article: usize, stamp: Stamp) -> Result<Look, Failure> {
        match self {
            Self::Memory(stock) => Ok(stock.look(article, stamp)),
            Self::Postgres(stock) => stock.look(article, stamp).await,
        }
    }

    /// Books a sale to a buyer of a shop, after which so many pieces are left.
    pub(crate) async fn book(
        &self,
        article: usize,
        left: u64,
        buyer: (usize, usize),
        stamp: Stamp,
    ) -> Result<Sale, Failure> {
        match self {
            Self::Memory(stock) => Ok(stock.book(article, left, buyer, stamp)),
            Self::Postgres(stock) => stock.book(article, left, buyer, stamp).await,
        }
    }
}

/// The name of the resource.
fn resource(article: usize) -> String {
    format!("article/{article}")
}
