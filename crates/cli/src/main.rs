//! `leasehold`: commands under locks on Redis, and a look at who holds what and who waits.

mod args;
mod bench;
mod doctor;
mod durations;
mod ending;
mod health;
mod json;
mod library;
mod list;
mod manual;
mod output;
mod quorum;
mod release;
mod run;
mod server;
mod show;
mod top;
mod words;

use std::{env, panic::resume_unwind, process, thread};

use clap::Parser;
use nix::sys::resource::{Resource, getrlimit};

use args::{ExitCode, Program, ProgramCommand, mistake};
use ending::CliError;
use output::{tell, write_out};

fn main() -> process::ExitCode {
    let mut words = env::args_os().skip(1);
    match words.next().as_deref().and_then(|word| word.to_str()) {
        // Helpers of a run: they are started often, and wait for their orders.
        Some(run::GUARD) => run::guard(),
        Some(run::STARTER) => run::start(words),
        _ => on_large_stack(),
    }
}

/// The least stack with which all commands have room to spare.
const STACK: u64 = 1 << 20;

/// Does it on a thread with a stack of its own if the caller's `ulimit -s` leaves too little.
fn on_large_stack() -> process::ExitCode {
    let is_small = getrlimit(Resource::RLIMIT_STACK).is_ok_and(|(limit, _)| limit < STACK);
    match is_small.then(|| thread::Builder::new().spawn(perform)) {
        Some(Ok(performing)) => performing.join().unwrap_or_else(|panic| resume_unwind(panic)),
        _ => perform(),
    }
}

/// Does what the command line says.
fn perform() -> process::ExitCode {
    let (codes, done) = match Program::try_parse() {
        Ok(program) => {
            let codes = match &program.command {
                ProgramCommand::Run(args) => args.exit_code.clone(),
                _ => Vec::new(),
            };
            (codes, execute(program))
        }
        // Help and the version.
        Err(error) if !error.use_stderr() => {
            (Vec::new(), write_out(error.to_string().as_bytes()).map(|_| 0))
        }
        Err(error) => {
            (ExitCode::among(env::args_os().skip(1)), Err(mistake(&error, env::args_os().skip(1))))
        }
    };
    let code = done.unwrap_or_else(|CliError { cause, text }| {
        if !text.is_empty() {
            tell(&text);
        }
        ExitCode::of(&codes, cause)
    });
    code.into()
}

/// Returns the exit code.
fn execute(Program { server: at, command }: Program) -> Result<u8, CliError> {
    match command {
        ProgramCommand::Run(args) => run::run(&at, args),
        ProgramCommand::Ls(args) => server::tokio()?.block_on(list::list(&at, &args)),
        ProgramCommand::Show(args) => server::tokio()?.block_on(show::show(&at, &args)),
        ProgramCommand::Top(args) => server::tokio()?.block_on(top::top(&at, &args)),
        ProgramCommand::Release(args) => server::tokio()?.block_on(release::release(&at, &args)),
        ProgramCommand::Doctor(args) => server::tokio()?.block_on(doctor::doctor(&at, &args)),
        ProgramCommand::Quorum(args) => server::tokio()?.block_on(quorum::quorum(&at, &args)),
        ProgramCommand::Health => server::tokio()?.block_on(health::health(&at)),
        ProgramCommand::Bench(args) => server::tokio()?.block_on(bench::bench(&at, &args)),
        ProgramCommand::Completions { shell } => manual::completions(shell),
        ProgramCommand::Man => manual::man(),
    }
}
