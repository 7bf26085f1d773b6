//! Quorums that are set up wrong: the line says what to change, in the words of this program.

use leasehold_testkit::QuorumGroup;

use crate::support::{Finished, LOCK, finished, leasehold};

fn ask(url: &str, words: &[&str]) -> Finished {
    finished(leasehold(words).env("REDIS_URL", url))
}

#[test]
fn a_time_that_no_quorum_keeps_is_refused_before_the_command() {
    let group = QuorumGroup::start(3);
    group.let_vote();
    let url = group.url();
    for (option, time) in [("--once", "2h"), ("--min-hold", "2h"), ("--ttl", "61s")] {
        let ended = ask(&url, &["run", option, time, LOCK, "--", "echo", "run"]);
        let text = ended.complaint(78);
        assert!(ended.out.is_empty() && text.contains(option), "{text}");
        assert!(text.contains("60s at most") && !text.contains("longest_ttl"), "{text}");
        ask(&url, &["run", option, "1m", &format!("{LOCK}{option}"), "--", "true"]).well();
        let single = group.server(0).url();
        ask(&single, &["run", option, time, &format!("one{option}"), "--", "true"]).well();
    }
}

/// Locks cannot be used before a majority counts, and not while a majority is full.
#[test]
fn health_is_that_of_a_majority() {
    let group = QuorumGroup::start(3);
    let url = group.url();
    let ended = ask(&url, &["health"]);
    let text = ended.complaint(69);
    assert!(text.contains("counts again in") && text.contains("3 of 3 nodes"), "{text}");
    assert!(!text.contains("lock"), "it is about no lock: {text}");
    group.let_vote();
    ask(&url, &["health"]).well();
    group.server(0).command(&["CONFIG", "SET", "maxmemory", "1"]);
    ask(&url, &["health"]).well();
    group.server(1).command(&["CONFIG", "SET", "maxmemory", "1"]);
    let ended = ask(&url, &["health"]);
    let text = ended.complaint(69);
    assert!(text.contains("OOM") && text.contains("2 of 3 nodes"), "{text}");
}

#[test]
fn a_password_that_a_majority_refuses_is_a_matter_of_configuration() {
    let group = QuorumGroup::start(3);
    group.let_vote();
    let place = |number: usize| format!("127.0.0.1:{}", group.server(number).port().unwrap());
    let with = |password: &str| {
        let mut health = leasehold(["health"]);
        finished(health.env("REDIS_URL", group.url()).env("REDIS_PASSWORD", password))
    };
    for number in 0..2 {
        group.server(number).command(&["CONFIG", "SET", "requirepass", "right"]);
    }
    let ended = with("wrong");
    let text = ended.complaint(78);
    assert!(text.contains(&place(0)) && text.contains(&place(1)), "{text}");
    assert!(text.contains("REDIS_PASSWORD") && !text.contains("network"), "{text}");
    // Without one, a majority asks for it, and the line names who does.
    let ended = ask(&group.url(), &["health"]);
    let text = ended.complaint(78);
    assert!(text.contains(&place(0)) && text.contains("NOAUTH"), "{text}");
}
