use std::process::{Command, Stdio};

use leasehold_testkit::RedisServer;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    faults::matrix::row,
    run::{children, is_gone},
    support::{LOCK, Running, finished, leasehold, settled},
};

row! {
    inherited_lock: protected, control;
    fault: "the caller of a run holds an flock, by a file descriptor that the run inherits; the run is killed, or ends",
    right: "the command keeps the descriptor, the guard does not: the flock is free when command and run have ended",
    control: "a helper that keeps what it inherits",
}

const RUNS: usize = 20;

fn protected() -> String {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flock");
    let file = file.to_str().unwrap();
    let under = |script: &str| {
        let program = env!("CARGO_BIN_EXE_leasehold");
        let run = format!("exec 9>{file}; flock 9; exec {program} run {LOCK} -- {script}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &run]).env("REDIS_URL", server.url()).stderr(Stdio::piped());
        Running::start(&mut shell)
    };
    for _ in 0..RUNS {
        under("true").end().well();
        assert!(is_free(file), "after a run that has ended");
    }
    // The run is killed, and its guard waits for a command that does not end.
    let mut running = under("sh -c \"trap '' TERM; while :; do sleep 0.02; done\"");
    settled(|| (children(running.pid()).len() == 2).then_some(()));
    let helpers = children(running.pid());
    let has = |pid: &String| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|open| std::fs::read_link(open.path()).ok())
            .any(|open| open.ends_with("flock"))
    };
    let is_guard = |pid: &&String| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.contains("__guard"))
    };
    // Until it has executed its program, a child has the command line of its parent.
    let guard = settled(|| helpers.iter().find(is_guard));
    settled(|| (!has(guard)).then_some(()));
    let command = helpers.iter().find(|pid| *pid != guard).expect("a command");
    assert!(has(command), "the command keeps it");
    assert!(!is_free(file));
    running.kill();
    let group = Pid::from_raw(-command.parse::<i32>().unwrap());
    kill(group, Signal::SIGKILL).unwrap();
    settled(|| is_gone(command).then_some(()));
    // Whatever the guard still waits for.
    settled(|| is_free(file).then_some(()));
    // The lease of a killed run ends with its ttl; nobody waits for it here.
    finished(leasehold(["release", LOCK, "--yes"]).env("REDIS_URL", server.url())).well();
    format!("free after each of {RUNS} runs, and after one that was killed; the command had it")
}

fn control() -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flock");
    let file = file.to_str().unwrap();
    let naive = format!("exec 9>{file}; flock 9; sleep 30 >/dev/null 2>&1 & true");
    let mut shell = Command::new("sh");
    let naive = format!("{naive}; echo $!");
    let helper = finished(shell.args(["-c", &naive]).stdout(Stdio::piped())).well();
    assert!(!is_free(file), "the control shows no damage");
    kill(Pid::from_raw(helper.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
    "command and caller have ended, and the flock is taken".into()
}

fn is_free(file: &str) -> bool {
    Command::new("flock").args(["-n", file, "true"]).status().expect("flock is there").success()
}
