//! Signals reach the command, and nothing of it stays.

use leasehold_testkit::RedisServer;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::support::{LOCK, Running, leasehold, settled, value};

#[test]
fn signals_are_forwarded() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    for (signal, name) in [
        (Signal::SIGINT, "INT"),
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGQUIT, "QUIT"),
        (Signal::SIGUSR1, "USR1"),
        (Signal::SIGUSR2, "USR2"),
    ] {
        let file = folder.path().join(name);
        let script = format!(
            "trap 'echo {name}; exit 9' {name}; touch {}; while :; do sleep 0.02; done",
            file.display()
        );
        let mut command = leasehold(["run", LOCK, "--", "sh", "-c", &script]);
        let running = Running::begun(command.env("REDIS_URL", server.url()), &file);
        kill(Pid::from_raw(running.pid()), signal).unwrap();
        let ended = running.end();
        assert_eq!((ended.code, ended.out.trim()), (9, name), "{}", ended.err);
    }
    assert_eq!(value(&server, LOCK)["state"], "free");
}

#[test]
fn a_signal_ends_a_wait_and_gives_the_place_up() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let mut command = leasehold(["run", LOCK, "--", "sh", "-c", &script]);
    let _holder = Running::begun(command.env("REDIS_URL", server.url()), &file);
    let waiter = Running::start(
        leasehold(["run", "--wait-forever", LOCK, "--", "true"]).env("REDIS_URL", server.url()),
    );
    let waiting = || value(&server, LOCK)["waiters"].as_array().unwrap().len();
    settled(|| (waiting() == 1).then_some(()));
    kill(Pid::from_raw(waiter.pid()), Signal::SIGTERM).unwrap();
    let ended = waiter.end();
    assert_eq!((ended.code, &*ended.err), (143, ""));
    assert_eq!(waiting(), 0);
}

/// As `nohup` wants it; the script around it ignores the signal, too.
#[test]
fn a_signal_that_was_ignored_before_stays_ignored() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let program = env!("CARGO_BIN_EXE_leasehold");
    let inner = format!("touch {0}; while [ -e {0} ]; do sleep 0.02; done; exit 5", file.display());
    let script = format!("trap '' HUP; exec {program} run {LOCK} -- sh -c '{inner}'");
    let mut shell = std::process::Command::new("sh");
    let running = Running::begun(shell.args(["-c", &script]).env("REDIS_URL", server.url()), &file);
    kill(Pid::from_raw(running.pid()), Signal::SIGHUP).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(running.end().code, 5);
}

/// The one who started the run has blocked signals: it gets them nevertheless, and notices the end of
/// its command. Its next look at the clock is hours away.
#[test]
fn signals_that_were_blocked_before_are_let_in() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let program = env!("CARGO_BIN_EXE_leasehold");
    let run = |script: &str| {
        let mut env = std::process::Command::new("env");
        env.args(["--block-signal=CHLD", "--block-signal=TERM", program, "run", "--ttl", "24h"]);
        env.args([LOCK, "--", "sh", "-c", script]).env("REDIS_URL", server.url());
        env
    };
    assert_eq!(Running::start(&mut run("exit 3")).end().code, 3);
    let running = Running::begun(&mut run(&script), &file);
    kill(Pid::from_raw(running.pid()), Signal::SIGTERM).unwrap();
    assert_eq!(running.end().code, 143);
}

/// Also while it connects.
#[test]
fn a_signal_ends_a_run_that_waits_for_its_server() {
    let server = RedisServer::start();
    server.stop_signal();
    let words = ["run", LOCK, "--", "true"];
    let running = Running::start(leasehold(words).env("REDIS_URL", server.url()));
    settled(|| (super::guard::children(running.pid()).len() == 2).then_some(()));
    let run = Pid::from_raw(running.pid());
    kill(run, Signal::SIGTERM).unwrap();
    let ended = running.end();
    assert_eq!((ended.code, &*ended.err), (143, ""));
    server.cont_signal();
}
