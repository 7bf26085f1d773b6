//! A quorum of independent servers beside one server and beside the quorums of other libraries,
//! `cargo bench -p leasehold-benches --bench quorum`.
//!
//! - *own names*: 1, 16 and 64 tasks of a process, each with a lock that nobody else wants;
//! - *one name*: 4 processes of 8 tasks that want one lock;
//! - all servers up, and one of three or two of five down.
//!
//! Every run starts the processes of a subject anew, on the same 3 or 5 servers; rounds of all
//! subjects are interleaved. Words choose rows: `-- 3-up one`. `--test` asks for one quick pass, as
//! `cargo test` does. Called with the argument `worker`, this program is one of those processes.
//! `scripts/bench-quorum.sh` installs the peer in JavaScript, too, which is left out otherwise.

#[path = "../failures.rs"]
mod failures;
mod options;
mod orchestrate;
mod peers;
mod subjects;
#[path = "../table.rs"]
#[expect(dead_code, reason = "no goal is a figure of a single row")]
mod table;
#[path = "../contention/worker/mod.rs"]
mod worker;

#[path = "../acquire_release/cpu.rs"]
mod cpu;
#[path = "../contention/output.rs"]
mod output;

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
