//! No command outlives a run that was killed, or stands still, by more than the grace.

use std::{
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::Command,
};

use leasehold_testkit::RedisServer;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::loss::is_gone;
use crate::support::{LOCK, Running, leasehold, settled};

/// A run of a script that writes its process id into a file.
fn begun(server: &RedisServer, options: &[&str], script: &str, file: &Path) -> (Running, String) {
    let script = format!("echo $$ >{0}.new; mv {0}.new {0}; {script}", file.display());
    let words = [&["run"], options, &[LOCK, "--", "sh", "-c", &script]].concat();
    let running = Running::begun(leasehold(words).env("REDIS_URL", server.url()), file);
    let pid = std::fs::read_to_string(file).unwrap().trim().to_owned();
    (running, pid)
}

const STUBBORN: &str = "trap '' TERM; while :; do sleep 0.02; done";

#[test]
fn a_killed_run_takes_its_command_along() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    for (name, script) in [("willing", "exec sleep 100"), ("stubborn", STUBBORN)] {
        let (running, pid) =
            begun(&server, &["--grace", "300ms"], script, &folder.path().join(name));
        assert!(!is_gone(&pid));
        kill(Pid::from_raw(running.pid()), Signal::SIGKILL).unwrap();
        settled(|| is_gone(&pid).then_some(()));
        finished_lease(&server);
    }
}

/// The lease of a killed run ends with its ttl; here an operator does not wait for it.
fn finished_lease(server: &RedisServer) {
    crate::support::finished(leasehold(["release", LOCK, "--yes"]).env("REDIS_URL", server.url()))
        .well();
}

#[test]
fn a_run_that_stands_still_past_its_lease_loses_its_command() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let options = ["--ttl", "500ms", "--grace", "300ms"];
    for (name, script) in [("willing", "exec sleep 100"), ("stubborn", STUBBORN)] {
        let (running, pid) = begun(&server, &options, script, &folder.path().join(name));
        let run = Pid::from_raw(running.pid());
        kill(run, Signal::SIGSTOP).unwrap();
        settled(|| is_gone(&pid).then_some(()));
        kill(run, Signal::SIGCONT).unwrap();
        assert!(running.end().last_complaint(76).contains("lost"));
    }
}

/// Another guard takes its place.
#[test]
fn a_killed_guard_is_replaced() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let (running, pid) =
        begun(&server, &["--ttl", "2s"], "exec sleep 100", &folder.path().join("begun"));
    let guards =
        || children(running.pid()).into_iter().filter(|child| *child != pid).collect::<Vec<_>>();
    let before = guards();
    let [guard] = &before[..] else { panic!("{before:?}") };
    kill(Pid::from_raw(guard.parse().unwrap()), Signal::SIGKILL).unwrap();
    settled(|| guards().iter().any(|other| other != guard && !is_gone(other)).then_some(()));
    kill(Pid::from_raw(running.pid()), Signal::SIGKILL).unwrap();
    settled(|| is_gone(&pid).then_some(()));
}

/// The run may be killed in the moment in which it replaces its guard.
#[test]
fn a_guard_whose_run_has_told_nothing_ends_the_command() {
    let mut command = Command::new("sleep").arg("100").process_group(0).spawn().unwrap();
    let words = ["__guard", "100", "100", &command.id().to_string()];
    assert_eq!(crate::support::finished(&mut leasehold(words)).well(), "");
    let ended = settled(|| command.try_wait().unwrap());
    assert_eq!(ended.signal(), Some(Signal::SIGTERM as i32));
}

/// The processes that a process has started.
pub(super) fn children(pid: i32) -> Vec<String> {
    let listed =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}
