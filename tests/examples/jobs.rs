//! The examples of jobs end well, in this process and on a server, and say what is wrong with a
//! wrong address.

use leasehold_testkit::RedisServer;

use crate::program::{assert_reported, finished, start, text};

#[test]
fn a_scheduled_job_runs_once_in_a_fleet_and_survives_a_crash() {
    let reported = ["12 periods", "skipped", "instance 0 died in a run", "All invariants hold."];
    let at = |place| [&reported[..], &[place]].concat();
    let here = finished(start("scheduled_job", None));
    assert_reported(&here, &at("in this process"));
    let server = RedisServer::builder().tcp().start();
    for _ in 0..2 {
        let there = finished(start("scheduled_job", Some(&server.url())));
        assert_reported(&there, &at("in processes of their own"));
    }
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[test]
fn a_leader_steps_down_and_its_late_write_is_refused() {
    let reported =
        ["4 candidates", "of one leader at a time", "late write  refused", "All invariants hold."];
    let at = |place| [&reported[..], &[place]].concat();
    assert_reported(&finished(start("leader", None)), &at("in this process"));
    let server = RedisServer::start();
    let copies = [(); 2].map(|()| start("leader", Some(&server.url())));
    for copy in copies {
        assert_reported(&finished(copy), &at("on Redis"));
    }
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[test]
fn a_wrong_address_is_named_without_its_password() {
    for example in ["scheduled_job", "leader"] {
        let output = finished(start(example, Some("redis://bob:hush-hush@127.0.0.1:1")));
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains("REDIS_URL") && error.contains("127.0.0.1:1"), "{error}");
        assert!(!error.contains("hush") && !error.contains("panicked"), "{error}");
    }
}
