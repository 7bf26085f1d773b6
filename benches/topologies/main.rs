//! Where locks live: one server, a Sentinel group, Clusters of one and of three masters,
//! `cargo bench -p leasehold-benches --bench topologies`.
//!
//! - *pairs*: uncontended acquire and release, beside the scripts of the library called without it
//!   and two minimal scripts with a fence, on the same topology;
//! - *scale*: more rounds of uncontended pairs, on a Cluster of three masters and beside it;
//! - *hand-overs*: one contended lock for each master, beside minimal scripts that queue;
//! - *replicas*: what it costs to wait for a replica, beside the minimal scripts that do so;
//! - *renewals*: what it costs renewals to wait for a replica;
//! - *commands*: processor time of the server for each kind of command, alone and side by side;
//! - *memory*: bytes that a lock takes in Redis;
//! - *processes*: what a process costs the servers that does nothing;
//! - *wake-ups*: what a message costs on the bus of a Cluster, by plain and by sharded channels.
//!
//! Every server runs from beginning to end, and rounds of all rows of a part are interleaved. Words
//! choose parts: `-- pairs wake-ups`. `--test` asks for one quick pass, as `cargo test` does.

mod commands;
mod hand_overs;
mod lengths;
mod locks;
mod memory;
mod options;
mod pairs;
mod part;
mod processes;
mod renewals;
mod replicas;
mod scale;
mod site;
mod subjects;
#[path = "../table.rs"]
#[expect(dead_code, reason = "no goal is a figure of a single row")]
mod table;
mod usage;
mod wake_ups;

#[path = "../acquire_release/cpu.rs"]
mod cpu;
#[path = "../library.rs"]
#[expect(dead_code, reason = "leases are renewed by the library itself")]
mod library;
#[path = "../contention/worker/contender.rs"]
mod worker;

use std::{env, error::Error};

use lengths::Lengths;
use part::Part;

/// What can go wrong: anything, and it is told.
type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let lengths =
        if arguments.iter().any(|word| word == "--test") { Lengths::QUICK } else { Lengths::FULL };
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let is_wanted =
        |part: &Part| words.is_empty() || words.iter().any(|word| part.name().contains(*word));
    let mut tables = Vec::new();
    for part in Part::ALL.into_iter().filter(is_wanted) {
        for table in part.measure(lengths)? {
            table.print();
            tables.push(table);
        }
    }
    scale::print(&tables);
    for table in &tables {
        table.print_json();
    }
    Ok(())
}
