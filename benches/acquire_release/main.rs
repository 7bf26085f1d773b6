//! Uncontended acquire and release: `cargo bench -p leasehold-benches --bench acquire_release`.
//!
//! Beside Leasehold stand its own scripts called without it (*floor*), two minimal scripts with a
//! fence, another library (rslock), and two `PING`s, which no lock can beat that sends two
//! commands. All of them run in the same kind of tokio runtime. Rounds of all are interleaved on
//! one private server.

mod cpu;
#[path = "../library.rs"]
#[expect(dead_code, reason = "leases are not renewed here")]
mod library;
mod report;
mod round;
mod server_cpu;
mod subjects;

use std::{error::Error, io};

use leasehold_testkit::RedisServer;
use report::Report;
use round::Load;
use subjects::Subject;
use tokio::runtime::{Builder, Runtime};

/// What can go wrong: anything, and it is told.
type Failure = Box<dyn Error + Send + Sync>;

/// Numbers of tasks, and how many pairs each round runs at it.
const LOADS: [(usize, usize); 4] = [(1, 4_000), (16, 30_000), (64, 60_000), (256, 60_000)];

/// The kinds of tokio runtime, and what the rows of each are called.
const KINDS: [(&str, Kind); 2] = [
    ("multi-thread", || Builder::new_multi_thread().enable_all().build()),
    ("current-thread", || Builder::new_current_thread().enable_all().build()),
];

/// Builds a tokio runtime of some kind.
type Kind = fn() -> io::Result<Runtime>;

/// How many rounds of each; odd, so that the median is one that was seen.
const ROUNDS: usize = 7;

fn main() -> Result<(), Failure> {
    // `cargo test --benches` asks for one quick pass.
    let args: Vec<String> = std::env::args().skip(1).collect();
    let quick = args.iter().any(|arg| arg == "--test");
    // `-- multi-thread 64` measures a part; without words, everything.
    let is_chosen = |word: &str| args.iter().any(|arg| arg == word);
    let chooses_kind = KINDS.iter().any(|(kind, _)| is_chosen(kind));
    let chooses_load = LOADS.iter().any(|(tasks, _)| is_chosen(&tasks.to_string()));
    let server = RedisServer::builder().tcp().start();
    let (url, mut report) = (server.url(), Report::default());
    for (kind, build) in KINDS.iter().filter(|(kind, _)| !chooses_kind || is_chosen(kind)) {
        let runtime = build()?;
        let loads = LOADS.iter().copied();
        let chosen = loads.filter(|(tasks, _)| !chooses_load || is_chosen(&tasks.to_string()));
        for (tasks, pairs) in chosen {
            let (rounds, pairs) = if quick { (1, tasks.max(16)) } else { (ROUNDS, pairs) };
            for done in 0..rounds {
                for subject in Subject::ALL {
                    let round = runtime.block_on(subject.round(&url, Load { tasks, pairs }))?;
                    report.add(kind, tasks, subject, round);
                }
                eprintln!("{kind}, {tasks} tasks: round {} of {rounds}", done + 1);
            }
        }
    }
    report.print();
    Ok(())
}
