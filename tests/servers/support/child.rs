//! A test binary that runs itself as another process, to be stopped and killed.
//!
//! A module that starts children has a test named [`PROGRAM`], which does nothing unless it
//! [runs as a child](role).
#![expect(clippy::disallowed_methods, reason = "bounds the life of a process")]

use std::{env, process, process::Command, thread, time::Duration};

use leasehold_testkit::ChildProcess;

use super::wait;

/// The name of the test that is the child's program.
const PROGRAM: &str = "child_program";

/// How long a child lives at most, should its parent be gone and nothing else be said.
const LIFE: Duration = Duration::from_secs(60);

/// The argument that says how many seconds it lives at most.
pub(crate) const LIFE_SECONDS: &str = "life";

/// Runs the program of a module in another process, in a role and with named arguments.
pub(crate) fn spawn(module: &str, role: &str, args: &[(&str, &str)]) -> ChildProcess {
    ChildProcess::spawn(command(module, role, args))
}

/// The command that [`spawn`] runs.
pub(crate) fn command(module: &str, role: &str, args: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env::current_exe().expect("a test knows its own program"));
    // Names of tests begin after the name of the crate.
    let (_, module) = module.split_once("::").expect("the path of a module");
    let program = format!("{module}::{PROGRAM}");
    command.args([program.as_str(), "--exact", "--nocapture", "--test-threads=1"]);
    command.env("LEASEHOLD_CHILD", role);
    for (key, value) in args {
        command.env(variable(key), value);
    }
    command
}

/// The role of this process, if it is a child.
pub(crate) fn role() -> Option<String> {
    let role = env::var("LEASEHOLD_CHILD").ok()?;
    let life = env::var(variable(LIFE_SECONDS)).ok().and_then(|seconds| seconds.parse().ok());
    let life = life.map_or(LIFE, Duration::from_secs);
    thread::spawn(move || {
        thread::sleep(life);
        process::exit(3);
    });
    // The test runner has begun a line.
    println!();
    Some(role)
}

/// An argument of this child.
pub(crate) fn arg(key: &str) -> String {
    env::var(variable(key)).unwrap_or_else(|_| panic!("the child was given no {key}"))
}

/// Runs a child's future.
pub(crate) fn run(future: impl Future<Output = ()>) {
    wait::on_one_thread(future);
}

fn variable(key: &str) -> String {
    format!("LEASEHOLD_CHILD_{}", key.to_uppercase())
}
