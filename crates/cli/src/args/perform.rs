use std::{env, process};

use clap::Parser;

use super::{
    command::{Command, Program},
    exit_code::ExitCode,
    mistake::mistake,
};
use crate::{
    bench, doctor,
    ending::{ExitCodes, Failure},
    list, manual,
    output::write_out,
    release, run, show, top,
};

/// Does what the command line says.
pub(crate) fn perform() -> process::ExitCode {
    let program = match Program::try_parse() {
        Ok(program) => program,
        // Help and the version.
        Err(error) if !error.use_stderr() => {
            return ended(write_out(error.to_string().as_bytes()).map(|_| 0), ExitCodes::default());
        }
        Err(error) => {
            mistake(&error).tell();
            return ExitCode::among(env::args_os().skip(1)).usage.into();
        }
    };
    let codes = match &program.command {
        Command::Run(args) => ExitCode::all(&args.exit_code),
        _ => ExitCodes::default(),
    };
    ended(done(program, codes), codes)
}

fn ended(result: Result<u8, Failure>, codes: ExitCodes) -> process::ExitCode {
    match result {
        Ok(code) => code.into(),
        Err(failure) => {
            failure.tell();
            codes.of(failure.cause).into()
        }
    }
}

/// Returns the exit code.
fn done(program: Program, codes: ExitCodes) -> Result<u8, Failure> {
    let Program { server, command } = program;
    match command {
        Command::Run(args) => run::run(&server, args, codes),
        Command::Ls(args) => list::list(&server, &args),
        Command::Show(args) => show::show(&server, &args),
        Command::Top(args) => top::top(&server, &args),
        Command::Release(args) => release::release(&server, &args),
        Command::Doctor(args) => doctor::doctor(&server, &args),
        Command::Bench(args) => bench::bench(&server, &args),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man => manual::man(),
    }
}
