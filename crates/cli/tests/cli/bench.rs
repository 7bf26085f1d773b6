//! `leasehold bench`.

use leasehold_testkit::RedisServer;

use crate::support::{Terminal, finished, leasehold};

#[test]
fn the_figures_of_a_server_are_told_to_people_and_machines() {
    let server = RedisServer::start();
    let bench = |words: &[&str]| {
        let words = [&["bench", "--time", "600ms"], words].concat();
        finished(leasehold(words).env("REDIS_URL", server.url()))
    };
    let table = bench(&[]).well();
    assert_eq!(table.lines().count(), 6, "{table}");
    let document = bench(&["--json"]).json();
    for key in [
        "round_trips",
        "pairs",
        "pairs_on_64_locks",
        "hand_overs_between_processes",
        "hand_overs_between_tasks",
    ] {
        assert!(document[key]["per_second"].as_f64().unwrap() > 0.0, "{document}");
        assert!(document[key]["round_trips"].as_f64().unwrap() > 0.0, "{document}");
    }
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[test]
fn a_terminal_shows_the_progress() {
    let server = RedisServer::start();
    let words = [env!("CARGO_BIN_EXE_leasehold"), "bench", "--time", "2s"];
    let mut terminal = Terminal::start(&words, [("REDIS_URL", server.url())]);
    terminal.wait_for("the bar", |screen| screen.contains("[#") && screen.contains("pairs"));
    terminal.shows("IN BARE ROUND TRIPS");
    assert_eq!(terminal.code(), Some(0));
}
