//! A script that calls a script re-enters the lock through its environment.

use leasehold_testkit::RedisServer;

use crate::support::{LOCK, finished, leasehold};

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold");

fn outer(server: &RedisServer, inner: &str) -> crate::support::Finished {
    finished(leasehold(["run", LOCK, "--", "sh", "-c", inner]).env("REDIS_URL", server.url()))
}

#[test]
fn a_nested_run_re_enters_under_the_same_fence() {
    let server = RedisServer::start();
    let show = "echo $LEASEHOLD_LOCK $LEASEHOLD_FENCE $LEASEHOLD_LEASE";
    let nested = format!("{PROGRAM} run --owner-env --try {LOCK} -- sh -c '{show}'");
    let out = outer(
        &server,
        &format!("{show}; {nested} && {PROGRAM} run --owner-env {LOCK} -- {nested}"),
    )
    .well();
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines.iter().all(|line| *line == lines[0] && line.starts_with(LOCK)), "{out}");
}

#[test]
fn without_the_option_a_nested_run_waits_for_itself_and_says_so() {
    let server = RedisServer::start();
    let ended = outer(&server, &format!("{PROGRAM} run --wait 200ms {LOCK} -- true"));
    assert!(ended.complaint(75).contains("--owner-env"));
}

#[test]
fn another_lock_is_acquired_within_a_run() {
    let server = RedisServer::start();
    let nested = format!("{PROGRAM} run --owner-env other -- sh -c 'echo $LEASEHOLD_LOCK'");
    assert_eq!(outer(&server, &nested).well(), "other\n");
}

/// As without a run around it.
#[test]
fn a_nested_command_that_cannot_be_run_has_the_codes_of_shells() {
    let server = RedisServer::start();
    for (program, code) in [("no-such-program", 127), ("/", 126)] {
        let ended = outer(&server, &format!("{PROGRAM} run --owner-env {LOCK} -- {program}"));
        assert!(ended.complaint(code).contains(&format!("cannot run {program}")));
    }
}

/// Whatever lies between: a run of another lock, and a run that re-enters one of two.
#[test]
fn a_run_re_enters_the_locks_of_all_runs_around_it() {
    let server = RedisServer::start();
    let run = format!("{PROGRAM} run --owner-env --try");
    let show = r"sh -c 'echo $LEASEHOLD_LOCK $LEASEHOLD_FENCE'";
    let within_another =
        format!("echo $LEASEHOLD_LOCK $LEASEHOLD_FENCE; {run} other -- {run} {LOCK} -- {show}");
    let lines = outer(&server, &within_another).well();
    let lines: Vec<_> = lines.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], lines[1]);
    let script = format!("{run} a -- {run} b -- {run} b a -- {show}");
    let both = ["run", "a", "b", "--", "sh", "-c", &script];
    let out = finished(leasehold(both).env("REDIS_URL", server.url())).well();
    assert!(out.starts_with("b a "), "{out}");
}

/// Re-entry never grants: not after a loss, and not on another server.
#[test]
fn a_lease_that_has_ended_is_not_re_entered() {
    let server = RedisServer::start();
    let nested = format!("{PROGRAM} run --owner-env {LOCK} -- echo run");
    let stale =
        format!("trap '' TERM; {PROGRAM} release --yes {LOCK} >/dev/null 2>&1; {nested}; echo $?");
    let ended = outer(&server, &stale);
    assert_eq!((ended.code, ended.out.trim()), (76, "76"), "{}", ended.err);
    let other = RedisServer::start();
    let elsewhere = format!("REDIS_URL={} {nested}", other.url());
    let ended = outer(&server, &elsewhere);
    assert!(ended.complaint(76).contains("not re-entered"));
    assert_eq!(ended.out, "");
}

/// Who wants to re-enter, and cannot know what, is not to wait for itself, or to acquire anew.
#[test]
fn variables_of_a_run_that_are_incomplete_are_told() {
    let server = RedisServer::start();
    let nested = format!("{PROGRAM} run --owner-env --try other -- echo run");
    for spoilt in [
        "unset LEASEHOLD_LEASE",
        "LEASEHOLD_LEASE=junk",
        "unset LEASEHOLD_FENCE",
        "LEASEHOLD_FENCE=",
        "unset LEASEHOLD_LOCK",
        "LEASEHOLD_AROUND=junk",
    ] {
        let ended = outer(&server, &format!("{spoilt}; {nested}"));
        let text = ended.complaint(64);
        assert!(text.contains("LEASEHOLD_") && text.contains("incomplete"), "{spoilt}: {text}");
        assert_eq!(ended.out, "", "{spoilt}");
    }
    // The control: who does not ask for them is not concerned.
    let without = format!("unset LEASEHOLD_LEASE; {PROGRAM} run --try other -- echo run");
    assert_eq!(outer(&server, &without).well(), "run\n");
    let alone = ["run", "--owner-env", "--try", "other", "--", "true"];
    finished(leasehold(alone).env("REDIS_URL", server.url())).well();
}
