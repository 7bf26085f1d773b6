//! Orders that are done strictly in sequence for each customer, by several workers; one of them
//! stalls in an order for longer than its lease, and another does this order meanwhile.
//!
//! ```sh
//! cargo run -p leasehold-services --example order_sequence     # all in memory
//! REDIS_URL=redis://127.0.0.1/ DATABASE_URL=postgres://127.0.0.1/shop \
//!     cargo run -p leasehold-services --example order_sequence
//! ```
//!
//! With both addresses the orders are in PostgreSQL, in a table of this example that is made anew.
//! With the argument `unfenced`, in memory, it shows what happens without fences.
#![expect(clippy::disallowed_methods, reason = "an example takes real time")]

mod audit;
mod book;
mod worker;

use std::{env, process::ExitCode, time::Duration};

use book::Shelf;
use leasehold_services::{Database, Failure, Instance, Place, Stall, end};
use tokio::runtime::Runtime;
use worker::Worker;

const WORKERS: usize = 4;
const CUSTOMERS: u64 = 8;
/// The number of orders of each customer.
const ORDERS: u64 = 40;
const TTL: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    end(work())
}

fn work() -> Result<ExitCode, Failure> {
    let runtime = Runtime::new()?;
    let fenced = env::args().nth(1).is_none_or(|argument| argument != "unfenced");
    let shelf = Shelf::new(Database::from_env()?, fenced);
    let (place, stall) = (Place::from_env(), Stall::default());
    runtime.block_on(async {
        place.check().await?;
        shelf.make().await
    })?;
    let start = |index| {
        let worker = Worker { index, place: place.clone(), stall: stall.clone() };
        let shelf = shelf.clone();
        Instance::start(move || worker.work(shelf))
    };
    let workers: Vec<_> = (0..WORKERS).map(start).collect();
    let done = workers.into_iter().map(Instance::join).collect::<Result<Vec<_>, _>>()?;
    let journal = runtime.block_on(async { shelf.open().journal().await })?;
    Ok(audit::audit(&journal, &done).print())
}
