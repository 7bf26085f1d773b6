//! `leasehold release`.

use leasehold_testkit::RedisServer;
use serde_json::Value;

use crate::support::{LOCK, Running, Terminal, finished, leasehold, settled, value};

/// A run that holds the lock.
fn holder(server: &RedisServer) -> Running {
    let running = Running::start(
        leasehold(["run", LOCK, "--", "sleep", "100"]).env("REDIS_URL", server.url()),
    );
    settled(|| (value(server, LOCK)["state"] == "held").then_some(()));
    running
}

#[test]
fn the_fence_for_the_gate_is_the_output() {
    let server = RedisServer::start();
    let run = holder(&server);
    let held = value(&server, LOCK)["holder"]["fence"].as_u64().unwrap();
    let ended = finished(leasehold(["release", LOCK, "--yes"]).env("REDIS_URL", server.url()));
    assert!(ended.err.contains("gate"), "{ended:?}");
    assert!(ended.well().trim().parse::<u64>().unwrap() > held);
    assert_eq!(run.end().code, 76);
    let again = finished(leasehold(["release", LOCK, "--yes"]).env("REDIS_URL", server.url()));
    assert!(again.complaint(0).contains("nobody holds"));
}

#[test]
fn machines_get_a_document() {
    let server = RedisServer::start();
    let release = || {
        finished(leasehold(["release", LOCK, "--yes", "--json"]).env("REDIS_URL", server.url()))
            .json()
    };
    assert_eq!(release()["ended"], Value::Null);
    let _run = holder(&server);
    let document = release();
    assert!(document["fence"].as_u64() > document["ended"]["fence"].as_u64(), "{document}");
}

#[test]
fn without_a_terminal_it_does_not_guess_the_answer() {
    let server = RedisServer::start();
    let _run = holder(&server);
    let asked = finished(leasehold(["release", LOCK]).env("REDIS_URL", server.url()));
    assert!(asked.complaint(64).contains("--yes"));
    assert_eq!(value(&server, LOCK)["state"], "held");
}

#[test]
fn it_asks_on_a_terminal() {
    let server = RedisServer::start();
    let _run = holder(&server);
    let program = env!("CARGO_BIN_EXE_leasehold");
    for (answer, state) in [("\n", "held"), ("n\n", "held"), ("y\n", "free")] {
        let mut terminal =
            Terminal::start(&[program, "release", LOCK], [("REDIS_URL", server.url())]);
        let screen = terminal.shows("[y/N]");
        assert!(screen.contains(LOCK) && screen.contains("/sleep"), "{screen}");
        terminal.keys(answer);
        assert_eq!(terminal.code(), Some(0));
        assert_eq!(value(&server, LOCK)["state"], state, "{answer:?}");
    }
}
