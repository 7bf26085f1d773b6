use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use leasehold::{
    Stamp,
    fencing::{GateError, MemoryGate, StaleFence},
};

use super::{RUN, Storage, StorageError};
use crate::{
    article::Article,
    shelf::{Booking, Record, Shelf},
    tally::Tally,
};

/// Shelves in the memory of this process, behind a gate in memory.
#[derive(Debug, Default)]
pub(crate) struct MemoryStorage {
    gate: MemoryGate,
    records: Mutex<HashMap<String, Record>>,
    copies: Mutex<BTreeMap<String, Option<Tally>>>,
}

impl MemoryStorage {
    pub(crate) fn new() -> Self {
        Self::default()
    }
}

impl Storage for MemoryStorage {
    async fn look(&self, article: &Article, stamp: Stamp) -> Result<Shelf, StorageError> {
        let look = || lock(&self.records).get(&article.name).map(|record| record.shelf);
        Ok(self.gate.write(&article.name, stamp, look).map_err(refused)?.unwrap_or_default())
    }

    async fn book(
        &self,
        article: &Article,
        at: usize,
        booking: &Booking,
        stamp: Stamp,
    ) -> Result<(), StorageError> {
        let write = || {
            let mut records = lock(&self.records);
            let Record { shelf, bookings, twice } =
                records.entry(article.name.clone()).or_default();
            *shelf = Shelf { next: at + 1, stock: booking.stock };
            match bookings.get_mut(at) {
                None => bookings.push(booking.clone()),
                Some(before) if before == booking => {}
                Some(before) => {
                    *twice += 1;
                    *before = booking.clone();
                }
            }
        };
        self.gate.write(&article.name, stamp, write).map_err(refused)
    }

    /// Nobody else can join what lives in this process.
    async fn close(&self, _: Stamp) -> Result<(), StorageError> {
        Ok(())
    }

    async fn hand_in(&self, copy: &str, tally: &Tally, stamp: Stamp) -> Result<(), StorageError> {
        let write = || lock(&self.copies).insert(copy.to_owned(), Some(tally.clone()));
        self.gate.write(RUN, stamp, write).map(drop).map_err(refused)
    }

    async fn copies(&self) -> Result<BTreeMap<String, Option<Tally>>, StorageError> {
        Ok(lock(&self.copies).clone())
    }

    async fn records(&self, articles: &[Article]) -> Result<Vec<Record>, StorageError> {
        let records = lock(&self.records);
        let record = |article: &Article| records.get(&article.name).cloned().unwrap_or_default();
        Ok(articles.iter().map(record).collect())
    }
}

fn refused(stale: StaleFence) -> StorageError {
    GateError::from(stale).into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
