//! `--once`: a job that a fleet of machines begins at the same time.

use leasehold_testkit::RedisServer;

use crate::support::{Finished, LOCK, Running, finished, leasehold, value};

fn once(server: &RedisServer, options: &[&str], script: &str) -> Finished {
    let words = [&["run", "--once", "1h"], options, &[LOCK, "--", "sh", "-c", script]].concat();
    finished(leasehold(words).env("REDIS_URL", server.url()))
}

#[test]
fn a_job_that_was_done_is_not_done_again_within_the_window() {
    let server = RedisServer::start();
    assert_eq!(once(&server, &[], "echo done").well(), "done\n");
    assert_eq!(value(&server, LOCK)["state"], "kept");
    let second = once(&server, &[], "echo done");
    assert!(second.complaint(0).contains("was done already"));
    assert_eq!(second.out, "");
    assert_eq!(once(&server, &["-E", "done=4"], "echo done").code, 4);
}

#[test]
fn a_job_that_failed_may_be_done_by_another() {
    let server = RedisServer::start();
    assert_eq!(once(&server, &[], "exit 1").code, 1);
    assert_eq!(once(&server, &[], "echo done").well(), "done\n");
}

#[test]
fn a_job_that_runs_elsewhere_is_left_to_it() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let mut first = leasehold(["run", "--once", "1h", LOCK, "--", "sh", "-c", &script]);
    let _first = Running::begun(first.env("REDIS_URL", server.url()), &file);
    let second = once(&server, &[], "echo done");
    assert!(second.complaint(75).contains("runs already"));
    assert_eq!(second.out, "");
}
