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
    let options = ["--ttl", "500ms", "--grace", "200ms"];
    for (name, script) in [("willing", "exec sleep 100"), ("stubborn", STUBBORN)] {
        let (running, pid) = begun(&server, &options, script, &folder.path().join(name));
        let run = Pid::from_raw(running.pid());
        kill(run, Signal::SIGSTOP).unwrap();
        settled(|| is_gone(&pid).then_some(()));
        kill(run, Signal::SIGCONT).unwrap();
        assert!(running.end().last_complaint(76).contains("lost"));
    }
}

/// It goes on while its lease is held still, and a renewal gets through: the guard has begun to end the
/// command all the same.
#[test]
fn a_run_that_stands_still_past_the_beginning_of_the_grace_says_why_its_command_ended() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let script = format!("trap 'touch {}' TERM; while :; do sleep 0.02; done", told.display());
    let options = ["--ttl", "6s", "--grace", "2900ms"];
    let (running, pid) = begun(&server, &options, &script, &folder.path().join("begun"));
    let run = Pid::from_raw(running.pid());
    kill(run, Signal::SIGSTOP).unwrap();
    settled(|| told.exists().then_some(()));
    kill(run, Signal::SIGCONT).unwrap();
    assert!(running.end().last_complaint(76).contains("lost"));
    assert!(is_gone(&pid));
}

/// Whether it has ended by itself, or by its guard, its run cannot know: that is no success. What it left
/// behind is ended before others have the lock.
#[test]
fn a_command_that_ended_while_its_run_stood_still_is_no_success() {
    let server = RedisServer::start();
    for way in [&["--grace", "2900ms"][..], &["--grace-after", "--grace", "300ms"]] {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let left = format!("trap 'touch {}' TERM; while :; do sleep 0.02; done", file("told"));
        let left = format!("({left}) & echo $! >{0}.new; mv {0}.new {0}", file("left"));
        let script = format!("{left}; until [ -e {} ]; do sleep 0.02; done", file("end"));
        let options = [&["--once", "1h", "--ttl", "6s"], way].concat();
        let (running, pid) = begun(&server, &options, &script, &folder.path().join("begun"));
        let run = Pid::from_raw(running.pid());
        settled(|| folder.path().join("left").exists().then_some(()));
        let left = std::fs::read_to_string(file("left")).unwrap();
        kill(run, Signal::SIGSTOP).unwrap();
        std::fs::write(file("end"), "").unwrap();
        settled(|| is_gone(&pid).then_some(()));
        settled(|| folder.path().join("told").exists().then_some(()));
        kill(run, Signal::SIGCONT).unwrap();
        let told = running.end();
        assert!(told.last_complaint(76).contains("by itself, or because the guard"), "{told:?}");
        assert!(is_gone(left.trim()), "what it left behind goes on");
        assert_eq!(crate::support::value(&server, LOCK)["state"], "free", "it is not done");
    }
}

/// Its end wakes the run, and another guard takes its place: otherwise the run would look after 75 s.
#[test]
fn a_killed_guard_is_replaced() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let (running, pid) =
        begun(&server, &["--ttl", "10m"], "exec sleep 100", &folder.path().join("begun"));
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
pub(crate) fn children(pid: i32) -> Vec<String> {
    let listed =
        std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}
