//! Where orders are entered, in the sequence in which they are done.

mod memory;
mod postgres;

use std::sync::Arc;

use leasehold::Stamp;
use leasehold_services::{Database, Failure};
use memory::MemoryBook;
use postgres::PostgresBook;

/// Where the book is kept.
#[derive(Debug, Clone)]
pub(crate) enum Shelf {
    Memory(Arc<MemoryBook>),
    Postgres(Database),
}

/// The book, open in one runtime.
#[derive(Debug, Clone)]
pub(crate) enum Book {
    Memory(Arc<MemoryBook>),
    Postgres(PostgresBook),
}

/// The result of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Done,
    /// Another worker has the customer by now.
    Refused,
}

impl Shelf {
    /// In PostgreSQL, or in memory, where the fences can be left out.
    pub(crate) fn new(database: Option<Database>, fenced: bool) -> Self {
        database.map_or_else(|| Self::Memory(Arc::new(MemoryBook::new(fenced))), Self::Postgres)
    }

    /// Makes an empty book.
    pub(crate) async fn make(&self) -> Result<(), Failure> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Postgres(database) => {
                database.check().await?;
                PostgresBook::open(database).make().await
            }
        }
    }

    pub(crate) fn open(&self) -> Book {
        match self {
            Self::Memory(book) => Book::Memory(Arc::clone(book)),
            Self::Postgres(database) => Book::Postgres(PostgresBook::open(database)),
        }
    }
}

impl Book {
    /// The last order of a customer, or 0; `None` when another worker has the customer by now.
    pub(crate) async fn last(&self, customer: u64, stamp: Stamp) -> Result<Option<u64>, Failure> {
        match self {
            Self::Memory(book) => Ok(book.last(customer, stamp)),
            Self::Postgres(book) => book.last(customer, stamp).await,
        }
    }

    /// Enters an order, as customer and number.
    pub(crate) async fn enter(&self, order: (u64, u64), stamp: Stamp) -> Result<Entry, Failure> {
        match self {
            Self::Memory(book) => Ok(book.enter(order, stamp)),
            Self::Postgres(book) => book.enter(order, stamp).await,
        }
    }

    /// All orders, in the sequence in which they were entered.
    pub(crate) async fn journal(&self) -> Result<Vec<(u64, u64)>, Failure> {
        match self {
            Self::Memory(book) => Ok(book.journal()),
            Self::Postgres(book) => book.journal().await,
        }
    }
}

/// The name of the resource.
fn resource(customer: u64) -> String {
    format!("customer/{customer}")
}
