//! Very many leases in one runtime, `cargo bench -p leasehold-benches --bench watchdog`:
//! Leasehold's watchdog beside a task that renews for each lease.
//!
//! Every run is a process of its own on a server of its own. Called with the argument `worker`,
//! this program is that process.

#[path = "../arguments.rs"]
mod arguments;
#[path = "../failures.rs"]
mod failures;
#[path = "../library.rs"]
mod library;
mod orchestrate;
mod output;
#[path = "../table.rs"]
#[expect(dead_code, reason = "rows are known by their runs")]
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
        _ => orchestrate::main(&arguments),
    }
}
