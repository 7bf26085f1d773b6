//! Where stock is kept: every write carries the stamp of its lease, and a gate judges it.

mod call;
mod error;
mod memory;
mod record;
mod redis;
mod scripts;

use std::{collections::BTreeMap, future::Future};

use leasehold::Stamp;

pub(crate) use error::StorageError;
pub(crate) use memory::MemoryStorage;
pub(crate) use redis::RedisStorage;

use crate::{
    article::Article,
    shelf::{Booking, Record, Shelf},
    tally::Tally,
};

/// A storage of shelves and of what the copies of the program hand in.
///
/// It keeps whatever it is told, in any order: only the lock and the fence keep it right. All
/// calls may be repeated.
pub(crate) trait Storage: Send + Sync + 'static {
    /// Reads a shelf for a holder, and shuts out the holders before.
    fn look(
        &self,
        article: &Article,
        stamp: Stamp,
    ) -> impl Future<Output = Result<Shelf, StorageError>> + Send;

    /// Writes that the order with index `at` is done.
    fn book(
        &self,
        article: &Article,
        at: usize,
        booking: &Booking,
        stamp: Stamp,
    ) -> impl Future<Output = Result<(), StorageError>> + Send;

    /// Lets nobody join the run any more.
    fn close(&self, stamp: Stamp) -> impl Future<Output = Result<(), StorageError>> + Send;

    /// Keeps what a copy counted.
    fn hand_in(
        &self,
        copy: &str,
        tally: &Tally,
        stamp: Stamp,
    ) -> impl Future<Output = Result<(), StorageError>> + Send;

    /// The copies that have joined, with what they have handed in.
    fn copies(
        &self,
    ) -> impl Future<Output = Result<BTreeMap<String, Option<Tally>>, StorageError>> + Send;

    /// What is known of every article.
    fn records(
        &self,
        articles: &[Article],
    ) -> impl Future<Output = Result<Vec<Record>, StorageError>> + Send;
}

/// What the gate guards when copies join, hand in, and close the run.
const RUN: &str = "order_pipeline:{run}";
