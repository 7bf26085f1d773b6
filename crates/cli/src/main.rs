//! `leasehold`: commands under locks on Redis, and a look at who holds what and who waits.

mod args;
mod bench;
mod doctor;
mod durations;
mod ending;
mod json;
mod list;
mod manual;
mod output;
mod release;
mod run;
mod server;
mod show;
mod table;
mod top;
mod words;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let mut words = env::args_os().skip(1);
    match words.next().as_deref().and_then(|word| word.to_str()) {
        // Helpers of a run: they are started often, and wait for their orders.
        Some(run::GUARD) => run::guard(),
        Some(run::STARTER) => run::start(words),
        _ => args::perform(),
    }
}
