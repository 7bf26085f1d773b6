//! One contended name: Leasehold beside floors and another library,
//! `cargo bench -p leasehold-benches --bench contention`.
//!
//! Every run starts the processes of a subject anew, on one private server; rounds of all subjects
//! are interleaved. Called with the argument `worker`, this program is one of those processes;
//! `scripts/bench-peers.sh` uses it, too. Called with `crowd`, it is a process with very many
//! waiters.

mod crowd;
#[path = "../failures.rs"]
mod failures;
#[path = "../goal.rs"]
mod goal;
#[path = "../library.rs"]
#[expect(dead_code, reason = "leases are not renewed here")]
mod library;
mod options;
mod orchestrate;
mod output;
mod peers;
mod subjects;
#[path = "../table.rs"]
#[expect(dead_code, reason = "rows are known by their modes")]
mod table;
mod worker;

#[path = "../acquire_release/cpu.rs"]
mod cpu;

use std::{env, error::Error};

/// What can go wrong: anything, and it is told.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == "worker" => worker::main(rest),
        Some((first, rest)) if first == "crowd" => crowd::main(rest),
        _ => orchestrate::main(&arguments),
    }
}
