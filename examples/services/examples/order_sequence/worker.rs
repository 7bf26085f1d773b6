use std::time::Duration;

use leasehold::{LockRuntime, ReentrantLock};
use leasehold_services::{Failure, Place, SHUTDOWN, Stall};
use tokio::time::sleep;

use crate::{
    CUSTOMERS, ORDERS, TTL,
    book::{Book, Entry, Shelf},
};

/// One of the workers that do the same orders.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) place: Place,
    pub(crate) stall: Stall,
}

/// What a worker has done.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) orders: u64,
    /// Orders that another had done meanwhile.
    pub(crate) refused: u64,
    /// Leases that are still held.
    pub(crate) held: usize,
}

/// How long an order takes.
const WORK: Duration = Duration::from_millis(2);
/// The customer and the order in which a worker stalls.
const STALLING: (u64, u64) = (3, 20);

impl Worker {
    /// Goes from customer to customer, and does the next order of each, until there is none.
    pub(crate) async fn work(self, book: Shelf) -> Result<Done, Failure> {
        let builder = LockRuntime::builder().namespace("order-sequence").ttl(TTL);
        let builder = builder.service(format!("worker {}", self.index));
        let locks = self.place.open(builder.wait(Duration::from_secs(60))).await?;
        let (book, mut done) = (book.open(), Done::default());
        let mut customers: Vec<u64> = (0..CUSTOMERS).collect();
        customers.rotate_left(self.index);
        while !customers.is_empty() {
            for customer in std::mem::take(&mut customers) {
                let lock = locks.lock(format!("customer/{customer}"))?;
                match self.do_next(&book, &lock, customer).await? {
                    Some(Entry::Done) => done.orders += 1,
                    Some(Entry::Refused) => done.refused += 1,
                    None => continue,
                }
                customers.push(customer);
            }
        }
        done.held = locks.shutdown(SHUTDOWN).await.held;
        Ok(done)
    }

    /// Does the next order of a customer; `None` when there is none.
    async fn do_next(
        &self,
        book: &Book,
        lock: &ReentrantLock,
        customer: u64,
    ) -> Result<Option<Entry>, Failure> {
        let guard = lock.acquire().await?;
        // Shuts out the former worker: the order that is read now is the last until the next is
        // written.
        let Some(last) = book.last(customer, guard.stamp()).await? else {
            return Ok(Some(Entry::Refused));
        };
        if last == ORDERS {
            return Ok(None);
        }
        sleep(WORK).await;
        let order = (customer, last + 1);
        if order == STALLING {
            self.stall.once();
        }
        let entry = book.enter(order, guard.stamp()).await?;
        if order == STALLING && entry == Entry::Done {
            self.stall.end();
        }
        Ok(Some(entry))
    }
}
