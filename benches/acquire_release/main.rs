//! Uncontended acquire and release beside the bare floor: `cargo bench -p leasehold-benches --bench acquire_release`.
//!
//! The floor runs the same scripts on the same number of multiplexed connections in the same kind
//! of tokio runtime, without Leasehold. Rounds of both are interleaved on one private server;
//! medians are printed, with the spread of the rounds.

mod cpu;
mod floor;
mod report;
mod round;
mod subject;

use std::{error::Error, io};

use leasehold_testkit::RedisServer;
use report::Report;
use round::Round;
use tokio::runtime::{Builder, Runtime};

/// Numbers of tasks, and how many pairs each round runs at it.
const LOADS: [(usize, usize); 4] = [(1, 6_000), (16, 60_000), (64, 100_000), (256, 100_000)];

/// The kinds of tokio runtime, and what the rows of each are called.
const KINDS: [(&str, Kind); 2] = [
    ("multi-thread", || Builder::new_multi_thread().enable_all().build()),
    ("current-thread", || Builder::new_current_thread().enable_all().build()),
];

/// Builds a tokio runtime of some kind.
type Kind = fn() -> io::Result<Runtime>;

/// How many rounds of each; odd, so that the median is one that was seen.
const ROUNDS: usize = 7;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test --benches` asks for one quick pass.
    let quick = std::env::args().any(|arg| arg == "--test");
    let server = RedisServer::builder().tcp().start();
    let mut report = Report::default();
    for (kind, build) in KINDS {
        let runtime = build()?;
        for (tasks, pairs) in LOADS {
            let (rounds, pairs) = if quick { (1, tasks.max(16)) } else { (ROUNDS, pairs) };
            for done in 0..rounds {
                let (floor, subject) = runtime.block_on(measure(server.url(), tasks, pairs))?;
                report.add(kind, tasks, floor, subject);
                eprintln!("{kind}, {tasks} tasks: round {} of {rounds}", done + 1);
            }
        }
    }
    report.print();
    Ok(())
}

/// Runs a round of the floor and one of Leasehold, each after a short one to warm up.
async fn measure(
    url: String,
    tasks: usize,
    pairs: usize,
) -> Result<(Round, Round), Box<dyn Error>> {
    let (floor, locks) = (floor::connect(&url).await?, subject::connect(&url).await?);
    let floor_worker = |share| floor::worker(floor.clone(), share);
    let subject_worker = |share| subject::worker(locks.clone(), share);
    round::run(tasks, pairs / 10, floor_worker).await?;
    round::run(tasks, pairs / 10, subject_worker).await?;
    let first = round::run(tasks, pairs, floor_worker).await?;
    let second = round::run(tasks, pairs, subject_worker).await?;
    Ok((first, second))
}
