//! The books: what each form has done.

mod memory;
mod postgres;

use std::sync::Arc;

use leasehold::Stamp;
use leasehold_services::{Database, Failure};
use memory::MemoryBooks;
use postgres::PostgresBooks;

/// What a form adds to the total.
pub(crate) const AMOUNT: u64 = 10;

/// Where the books are kept.
#[derive(Debug, Clone)]
pub(crate) enum Shelf {
    Memory(Arc<MemoryBooks>),
    Postgres(Database),
}

/// The books, open in one runtime.
#[derive(Debug, Clone)]
pub(crate) enum Books {
    Memory(Arc<MemoryBooks>),
    Postgres(PostgresBooks),
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    New,
    /// An earlier run has entered the form, and died before it could answer.
    There,
    /// Another holder has been admitted since.
    Refused,
}

/// What is in the books.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries {
    pub(crate) forms: Vec<u64>,
    pub(crate) total: u64,
}

impl From<Option<Database>> for Shelf {
    fn from(database: Option<Database>) -> Self {
        database.map_or_else(|| Self::Memory(Arc::default()), Self::Postgres)
    }
}

impl Shelf {
    /// Makes empty books.
    pub(crate) async fn make(&self) -> Result<(), Failure> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Postgres(database) => {
                database.check().await?;
                PostgresBooks::open(database).make().await
            }
        }
    }

    pub(crate) fn open(&self) -> Books {
        match self {
            Self::Memory(books) => Books::Memory(Arc::clone(books)),
            Self::Postgres(database) => Books::Postgres(PostgresBooks::open(database)),
        }
    }
}

impl Books {
    /// Enters a form, unless it is there, and what it adds to the total: both or neither.
    pub(crate) async fn enter(&self, form: u64, stamp: Stamp) -> Result<Entry, Failure> {
        match self {
            Self::Memory(books) => Ok(books.enter(form, stamp)),
            Self::Postgres(books) => books.enter(form, stamp).await,
        }
    }

    pub(crate) async fn read(&self) -> Result<Entries, Failure> {
        match self {
            Self::Memory(books) => Ok(books.read()),
            Self::Postgres(books) => books.read().await,
        }
    }
}

/// The name of the resource.
fn resource(form: u64) -> String {
    format!("forms/{form}")
}
