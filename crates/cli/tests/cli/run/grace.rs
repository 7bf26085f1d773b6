//! The grace ends with the lease, and a command begins under a whole lease.

use leasehold_testkit::{FaultProxy, RedisServer, proxy::Direction};

use crate::support::{LOCK, Running, finished, leasehold, settled, value};

#[test]
fn a_grace_that_does_not_fit_is_refused_before_anything_runs() {
    let server = RedisServer::start();
    let run = |words: &[&str]| {
        let words = [&["run"], words, &[LOCK, "--", "echo", "ran"]].concat();
        finished(leasehold(words).env("REDIS_URL", server.url()))
    };
    let refused = run(&["--ttl", "10s", "--grace", "10s"]);
    let text = refused.complaint(64);
    assert!(text.contains("10s") && text.contains("--grace-after"), "{text}");
    assert_eq!(refused.out, "");
    for words in [
        &["--ttl", "10s"][..],
        &["--ttl", "10s", "--grace", "4s"],
        &["--grace", "1h", "--grace-after"],
    ] {
        assert_eq!(run(words).well(), "ran\n");
    }
}

/// One that was waited for begins with a claim window alone.
#[test]
fn a_command_begins_when_its_whole_ttl_is_confirmed() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {0}; while [ -e {0} ]; do sleep 0.02; done", file.display());
    let mut holder = leasehold(["run", LOCK, "--", "sh", "-c", &script]);
    let holder = Running::begun(holder.env("REDIS_URL", server.url()), &file);
    let show = format!("{} show --json {LOCK}", env!("CARGO_BIN_EXE_leasehold"));
    let words = ["run", "--ttl", "10m", "--wait-forever", LOCK, "--", "sh", "-c", &show];
    let waiter = Running::start(leasehold(words).env("REDIS_URL", server.url()));
    let waits = || {
        let waiters = value(&server, LOCK)["waiters"].as_array()?.len();
        (waiters == 1).then_some(())
    };
    settled(waits);
    std::fs::remove_file(&file).unwrap();
    holder.end().well();
    let seen = waiter.end().json();
    let left = seen["holder"]["ttl_left_ms"].as_u64().unwrap();
    assert!(left > 450_000, "{seen}");
}

/// Cut off, a run exits within the grace: at the server, its lease has not ended yet.
#[test]
fn in_an_outage_a_run_exits_before_its_lease_ends() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let words = ["run", "--ttl", "16s", "--grace", "7s", LOCK, "--", "sh", "-c", &script];
    let mut running = Running::begun(leasehold(words).env("REDIS_URL", proxy.url()), &file);
    proxy.black_hole(Direction::Both);
    settled(|| running.has_ended().then_some(()));
    assert_eq!(value(&server, LOCK)["state"], "held");
    assert!(running.end().last_complaint(76).contains("lost"));
}
