//! An HTTP service whose forms are submitted many times over, by double clicks and by clients that
//! retry, on two instances. Each form takes effect once: the first request runs, and the others are
//! told so at once. Some runs fail, one stalls for longer than its lease, and one dies with its
//! instance.
//!
//! ```sh
//! cargo run -p leasehold-services --example duplicate_submission     # all in memory
//! REDIS_URL=redis://127.0.0.1/ DATABASE_URL=postgres://127.0.0.1/shop \
//!     cargo run -p leasehold-services --example duplicate_submission
//! ```
//!
//! With both addresses the books are in PostgreSQL, in tables of this example that are made anew.
//! With the argument `ajar` every request has a key of its own: this shows what happens without the
//! door.
#![expect(clippy::disallowed_methods, reason = "an example takes real time")]

mod audit;
mod books;
mod door;
mod form;
mod service;
mod tally;
mod user;

use std::{
    env,
    net::{SocketAddr, TcpListener},
    process::ExitCode,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use books::Shelf;
use leasehold_services::{Database, Failure, Instance, Place, end};
use service::Service;
use tally::Tally;
use tokio::{runtime::Runtime, sync::watch};
use user::Users;

const INSTANCES: usize = 2;

fn main() -> ExitCode {
    end(submit_all())
}

fn submit_all() -> Result<ExitCode, Failure> {
    let runtime = Runtime::new()?;
    let (place, shelf) = (Place::from_env(), Shelf::from(Database::from_env()?));
    runtime.block_on(async {
        place.check().await?;
        shelf.make().await
    })?;

    let tally = Arc::new(Tally::default());
    let (closing, closed) = watch::channel(false);
    let (mut instances, mut addresses) = (Vec::new(), Vec::<SocketAddr>::new());
    for index in 0..INSTANCES {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        addresses.push(listener.local_addr()?);
        let service = Service { index, place: place.clone(), tally: Arc::clone(&tally) };
        let (shelf, closed) = (shelf.clone(), closed.clone());
        instances.push(Instance::start(move || service.live(listener, shelf, closed)));
    }

    let ajar = env::args().nth(1).is_some_and(|argument| argument == "ajar");
    let (addresses, run) = (addresses.into(), run_id()?);
    let users = Users { addresses, run, ajar, tally: Arc::clone(&tally) };
    let submitted = runtime.block_on(users.submit_all());
    closing.send(true)?;
    let held = instances.into_iter().map(Instance::join).sum::<Result<usize, _>>()?;
    submitted?;
    let books = runtime.block_on(async { shelf.open().read().await })?;
    Ok(audit::audit(&books, &tally, held).print())
}

/// Keeps the forms of this run apart from those of earlier ones, whose doors are still closed.
fn run_id() -> Result<Arc<str>, Failure> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros().to_string().into())
}
