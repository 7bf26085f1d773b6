//! Processes that fork themselves, as a program does that makes its workers so.

use std::{
    io::{self, Read, Write},
    process, thread,
};

use leasehold_testkit::{ChildProcess, ForkShim};

use super::child;

/// A child that may fork, and what it needs for that.
pub(crate) struct Forking {
    pub(crate) child: ChildProcess,
    _shim: ForkShim,
}

/// As [`child::spawn`], for a child that forks.
pub(crate) fn spawn(module: &str, role: &str, args: &[(&str, &str)]) -> Forking {
    let shim = ForkShim::build();
    let mut command = child::command(module, role, args);
    command.envs(shim.variables().iter().map(|(key, value)| (key, value)));
    Forking { child: ChildProcess::spawn(command), _shim: shim }
}

/// Runs work in a fork of this process, and waits for its end. The fork stays there, idle, and ends
/// with this thread.
pub(crate) fn run(work: impl FnOnce()) {
    let (mut heard, mut tell) = io::pipe().expect("a pipe");
    if ForkShim::fork().is_some() {
        drop(tell);
        let heard = heard.read(&mut [0]).expect("a pipe that is open");
        assert_eq!(heard, 1, "the fork has failed");
        return;
    }
    let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    if worked.is_err() {
        process::abort();
    }
    tell.write_all(&[1]).expect("somebody waits");
    loop {
        thread::park();
    }
}
