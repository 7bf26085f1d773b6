//! A flash sale: thousands of buyers in several shops want a few articles; one shop dies in
//! a sale, and one stalls for longer than its lease. No piece is sold twice, and none is left over.
//!
//! ```sh
//! cargo run -p leasehold-services --example flash_sale     # shops are threads, stock is in memory
//! REDIS_URL=redis://127.0.0.1/ DATABASE_URL=postgres://127.0.0.1/shop \
//!     cargo run -p leasehold-services --example flash_sale
//! ```
//!
//! With both addresses the shops are processes, and the stock is in PostgreSQL, in tables of this
//! example that are made anew.
#![expect(clippy::disallowed_methods, reason = "an example takes real time")]

mod audit;
mod fault;
mod sale;
mod shelf;
mod shop;

use std::{
    env,
    process::{Command, ExitCode},
    sync::Arc,
    thread,
};

use fault::Fault;
use leasehold_services::{Database, Failure, Place, end};
use shelf::{MemoryShelf, PostgresShelf, Shelf};
use shop::Shop;
use tokio::runtime::Runtime;

const SHOPS: usize = 4;

fn main() -> ExitCode {
    end(sell())
}

fn sell() -> Result<ExitCode, Failure> {
    match (Database::from_env()?, env::args().nth(1)) {
        (Some(database), Some(index)) => shop_process(&database, index.parse()?),
        (Some(database), None) => in_processes(&database),
        (None, _) => in_threads(),
    }
}

/// All shops in this process, each on a thread with a tokio runtime of its own.
fn in_threads() -> Result<ExitCode, Failure> {
    let (place, stock) = (Place::embedded(), Arc::new(MemoryShelf::stocked()));
    println!("{place}");
    let open = |index: usize| {
        let (place, shelf) = (place.clone(), Shelf::Memory(Arc::clone(&stock)));
        thread::spawn(move || run(&Shop { index, place, shelf, fault: Fault::of(index) }))
    };
    let shops: Vec<_> = (0..SHOPS).map(open).collect();
    for shop in shops {
        shop.join().map_err(|_| "a shop panicked")??;
    }
    Ok(audit::audit(&stock.books()).print())
}

/// Each shop in a process of its own.
fn in_processes(database: &Database) -> Result<ExitCode, Failure> {
    let runtime = Runtime::new()?;
    let shelf = runtime.block_on(async {
        Place::from_env().check().await?;
        database.check().await?;
        let shelf = PostgresShelf::new(database);
        shelf.stock().await?;
        Ok::<_, Failure>(shelf)
    })?;
    let program = env::current_exe()?;
    let open = |index: usize| Command::new(&program).arg(index.to_string()).spawn();
    let shops = (0..SHOPS).map(open).collect::<Result<Vec<_>, _>>()?;
    for (index, mut shop) in shops.into_iter().enumerate() {
        let status = shop.wait()?;
        if status.success() == (Fault::of(index) == Fault::Dies) {
            return Err(format!("shop {index} ended with {status}").into());
        }
    }
    let books = runtime.block_on(shelf.books())?;
    Ok(audit::audit(&books).print())
}

/// One shop, as a process.
fn shop_process(database: &Database, index: usize) -> Result<ExitCode, Failure> {
    // The pool is made in a runtime, and used in the shop's own.
    let shelf = Shelf::Postgres(Runtime::new()?.block_on(async { PostgresShelf::new(database) }));
    run(&Shop { index, place: Place::from_env(), shelf, fault: Fault::of(index) })?;
    if Fault::of(index) == Fault::Dies { std::process::abort() } else { Ok(ExitCode::SUCCESS) }
}

/// Lets a shop sell until it is sold out, or dies.
fn run(shop: &Shop) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let sold = runtime.block_on(shop.sell());
    // The tasks of a shop that died are never polled again.
    runtime.shutdown_background();
    sold
}
