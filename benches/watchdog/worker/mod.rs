//! A process that holds very many leases.

mod flaky;
mod leasehold;
mod options;
mod server;
mod tally;
mod task_each;
mod window;

use std::sync::Arc;

use options::{Options, Subject};
use tally::Tally;
use tokio::runtime::Builder;

use crate::{Failure, output::MEASURED};

/// How many threads the runtime has; benchmarks run on two cores.
const THREADS: usize = 2;

/// How many acquires are on their way at once.
const AT_ONCE: usize = 256;

/// Runs as the command line says, and prints the results.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let options = Options::parse(arguments)?;
    let tally = Arc::new(Tally::new());
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    // The main thread sleeps and counts, beside the two that work.
    let output = match options.subject {
        Subject::Leasehold => leasehold::run(&runtime, &options, &tally),
        Subject::TaskEach => task_each::run(&runtime, &options, &tally),
    }?;
    println!("{MEASURED}{}", serde_json::to_string(&output)?);
    runtime.shutdown_background();
    Ok(())
}
