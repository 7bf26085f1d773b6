//! Uncontended acquire and release: `cargo bench -p leasehold-benches --bench acquire_release`.
//!
//! Beside Leasehold stand its own scripts called without it (*floor*), two minimal scripts with a
//! fence, another library (rslock), and two `PING`s, which no lock can beat that sends two
//! commands. All of them run in the same kind of tokio runtime. Rounds of all are interleaved on
//! one private server. `-- far` measures round trips of 0, 2 and 20 ms.

mod cpu;
mod far_server;
#[path = "../library.rs"]
#[expect(dead_code, reason = "leases are not renewed here")]
mod library;
mod round;
mod server_cpu;
mod subjects;
#[path = "../table.rs"]
#[expect(dead_code, reason = "there are no goals")]
mod table;

use std::{error::Error, io, time::Duration};

use far_server::far_away;
use leasehold_testkit::RedisServer;
use round::Load;
use subjects::Subject;
use table::{Column, Key, Table};
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

/// How long each byte takes each way when the server is far, and what the rows of it are called.
const DISTANCES: [(&str, Duration); 3] = [
    ("0 ms each way", Duration::ZERO),
    ("1 ms each way", Duration::from_millis(1)),
    ("10 ms each way", Duration::from_millis(10)),
];

/// Numbers of tasks when the server is far, and how many pairs each of them runs in a round.
const FAR_LOADS: [usize; 4] = [1, 16, 64, 1024];
const FAR_PAIRS: usize = 40;

/// How many rounds of each; odd, so that the median is one that was seen.
const ROUNDS: usize = 7;

const COLUMNS: &[Column] = &[
    ("pairs/s", "pairs_per_second", 0),
    ("client µs", "client_micros_per_pair", 1),
    ("server µs", "server_micros_per_pair", 1),
    ("p50 µs", "p50_micros", 0),
    ("p99 µs", "p99_micros", 0),
];

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). × this: Leasehold's pairs/s divided by this row's, median
of the rounds' ratios. µs: processor time per pair, of the client and of the server; p50 and p99: how
long a pair takes.";

fn main() -> Result<(), Failure> {
    // `cargo test --benches` asks for one quick pass.
    let args: Vec<String> = std::env::args().skip(1).collect();
    let quick = args.iter().any(|arg| arg == "--test");
    // `-- multi-thread 64` measures a part; without words, everything.
    let is_chosen = |word: &str| args.iter().any(|arg| arg == word);
    let chooses_kind = KINDS.iter().any(|(kind, _)| is_chosen(kind));
    let chooses_load = LOADS.iter().any(|(tasks, _)| is_chosen(&tasks.to_string()));
    let rounds = if quick { 1 } else { ROUNDS };
    let server = RedisServer::builder().tcp().start();
    let url = server.url();
    let title = "uncontended acquire + release";
    let mut table = Table::new("pairs", title, COLUMNS, Some("× this"), LEGEND);
    if is_chosen("far") {
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        for (name, delay) in DISTANCES {
            let url = far_away(&url, delay)?;
            for tasks in FAR_LOADS {
                let load = Load { tasks, pairs: tasks * FAR_PAIRS };
                measure(&mut table, (name, &runtime), (&url, load), rounds)?;
            }
        }
    } else {
        for (kind, build) in KINDS.iter().filter(|(kind, _)| !chooses_kind || is_chosen(kind)) {
            let runtime = build()?;
            let loads = LOADS.iter().copied();
            for (tasks, pairs) in
                loads.filter(|(tasks, _)| !chooses_load || is_chosen(&tasks.to_string()))
            {
                let pairs = if quick { tasks.max(16) } else { pairs };
                let load = Load { tasks, pairs };
                measure(&mut table, (kind, &runtime), (&url, load), rounds)?;
            }
        }
    }
    table.print();
    table.print_json();
    Ok(())
}

/// Runs rounds of all subjects in turns, and adds them to the rows called `kind`.
fn measure(
    table: &mut Table,
    (kind, runtime): (&'static str, &Runtime),
    (url, load): (&str, Load),
    rounds: usize,
) -> Result<(), Failure> {
    let tasks = load.tasks;
    for done in 1..=rounds {
        for subject in Subject::ALL {
            let values = runtime.block_on(subject.round(url, load))?;
            table.add(Key::new(&kind, &format!("{tasks} tasks"), subject.name()), values);
        }
        eprintln!("{kind}, {tasks} tasks: round {done} of {rounds}");
    }
    Ok(())
}
