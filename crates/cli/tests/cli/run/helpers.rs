//! Accidents of the helpers of a run, its guard and its starter.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    process::Command,
};

use leasehold_testkit::RedisServer;
use nix::{
    fcntl::OFlag,
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{guard::children, loss::is_gone};
use crate::support::{LOCK, Running, leasehold, settled, value};

fn send(pid: &str, signal: Signal) {
    kill(Pid::from_raw(pid.parse().unwrap()), signal).unwrap();
}

/// The guard of a run, and the process that becomes its command.
fn helpers(run: &Running) -> Option<(String, String)> {
    let is_guard = |pid: &String| {
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.contains("__guard"))
    };
    let (guards, others): (Vec<_>, Vec<_>) = children(run.pid()).into_iter().partition(is_guard);
    Some((guards.first()?.clone(), others.into_iter().find(|pid| !is_gone(pid))?))
}

/// A run of a command that sleeps, its guard, and its command.
fn sleeping(server: &RedisServer, ttl: &str) -> (Running, String, String) {
    let words = ["run", "--ttl", ttl, "--grace", "200ms", LOCK, "--", "sleep", "100"];
    let run = Running::start(leasehold(words).env("REDIS_URL", server.url()));
    settled(|| (value(server, LOCK)["state"] == "held").then_some(()));
    let (guard, command) = settled(|| helpers(&run));
    (run, guard, command)
}

/// How many files a process may open from now on.
fn limit_files(run: &Running, count: &str) {
    let (pid, limit) = (run.pid().to_string(), format!("--nofile={count}:"));
    let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status();
    assert!(set.expect("prlimit is there").success());
}

#[test]
fn a_run_whose_guard_cannot_be_replaced_goes_on_and_tries_again() {
    let server = RedisServer::start();
    let (mut run, guard, command) = sleeping(&server, "8s");
    limit_files(&run, "3");
    send(&guard, Signal::SIGKILL);
    // Reaped: the run has noticed it.
    settled(|| (!children(run.pid()).contains(&guard)).then_some(()));
    assert!(!run.has_ended());
    limit_files(&run, "1024");
    settled(|| helpers(&run));
    assert_eq!(value(&server, LOCK)["state"], "held");
    run.kill();
    settled(|| is_gone(&command).then_some(()));
}

/// One that is stopped does not read what the run tells it, until the pipe is full.
#[test]
fn a_guard_that_does_not_read_is_replaced() {
    let server = RedisServer::start();
    let (mut run, guard, command) = sleeping(&server, "8s");
    send(&guard, Signal::SIGSTOP);
    fill_pipe(&run, &guard);
    settled(|| helpers(&run).filter(|(other, _)| *other != guard));
    assert_eq!(value(&server, LOCK)["state"], "held");
    run.kill();
    settled(|| is_gone(&command).then_some(()));
}

/// Fills the pipe from a run to its guard.
fn fill_pipe(run: &Running, guard: &str) {
    let pipe = fs::read_link(format!("/proc/{guard}/fd/0")).unwrap();
    let mut files =
        fs::read_dir(format!("/proc/{}/fd", run.pid())).unwrap().map(|file| file.unwrap().path());
    let path = files.find(|file| fs::read_link(file).is_ok_and(|link| link == pipe)).unwrap();
    let mut options = File::options();
    let mut pipe = options.write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path).unwrap();
    for size in [4096, 1] {
        let error = loop {
            if let Err(error) = pipe.write(&[b'\n'; 4096][..size]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn a_starter_that_is_killed_while_the_run_waits_is_the_end_of_the_command() {
    let server = RedisServer::start();
    let (holder, _, _) = sleeping(&server, "30s");
    let words = ["run", "--wait-forever", LOCK, "--", "true"];
    let waiter = Running::start(leasehold(words).env("REDIS_URL", server.url()));
    settled(|| (value(&server, LOCK)["waiters"].as_array()?.len() == 1).then_some(()));
    let (_, starter) = settled(|| helpers(&waiter));
    send(&starter, Signal::SIGKILL);
    settled(|| is_gone(&starter).then_some(()));
    kill(Pid::from_raw(holder.pid()), Signal::SIGTERM).unwrap();
    let ended = waiter.end();
    assert_eq!((ended.code, &*ended.err), (137, ""));
    assert_eq!(value(&server, LOCK)["state"], "free");
}
