//! Several locks at once, named in any order.

use leasehold_testkit::RedisServer;

use crate::support::{Running, finished, leasehold, value};

#[test]
fn the_variables_have_a_line_for_each_lock_in_the_order_of_the_command_line() {
    let server = RedisServer::start();
    let script = "echo \"$LEASEHOLD_LOCK\"; echo \"$LEASEHOLD_FENCE\"; echo \"$LEASEHOLD_LEASE\"";
    let run = ["run", "b", "c", "a", "--", "sh", "-c", script];
    let out = finished(leasehold(run).env("REDIS_URL", server.url())).well();
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines[..3], ["b", "c", "a"], "{out}");
    assert!(lines[3..6].iter().all(|fence| fence.parse::<u64>().is_ok()), "{out}");
    assert!(lines[6..9].iter().all(|lease| lease.contains(':')), "{out}");
    for name in ["a", "b", "c"] {
        assert_eq!(value(&server, name)["state"], "free");
    }
}

/// As in the library.
#[test]
fn a_name_that_is_named_twice_is_one_lock() {
    let server = RedisServer::start();
    let run = ["run", "a", "b", "a", "--", "sh", "-c", "echo $LEASEHOLD_LOCK"];
    let out = finished(leasehold(run).env("REDIS_URL", server.url())).well();
    assert_eq!(out, "a b\n");
    let once = ["run", "--once", "1h", "a", "a", "--", "true"];
    finished(leasehold(once).env("REDIS_URL", server.url())).well();
}

#[test]
fn one_that_is_taken_keeps_the_others_free() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let mut holder = leasehold(["run", "b", "--", "sh", "-c", &script]);
    let _holder = Running::begun(holder.env("REDIS_URL", server.url()), &file);
    for options in [&["--try"][..], &["--wait", "300ms"]] {
        let words = [&["run"], options, &["a", "b", "--", "true"]].concat();
        let ended = finished(leasehold(words).env("REDIS_URL", server.url()));
        assert!(ended.complaint(75).contains("\"b\""), "{ended:?}");
        assert_eq!(value(&server, "a")["state"], "free");
    }
}

#[test]
fn the_loss_of_one_ends_the_command() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let mut command = leasehold(["run", "a", "b", "--", "sh", "-c", &script]);
    let running = Running::begun(command.env("REDIS_URL", server.url()), &file);
    finished(leasehold(["release", "b", "--yes"]).env("REDIS_URL", server.url())).well();
    let ended = running.end();
    assert!(ended.last_complaint(76).contains("\"b\""), "{ended:?}");
    assert_eq!(value(&server, "a")["state"], "free");
}

/// Callers that name the same locks in other orders never wait for each other in a circle.
#[test]
fn the_order_of_the_names_does_not_matter() {
    let server = RedisServer::start();
    let run = |names: [&str; 2]| {
        let words = [&["run", "--wait-forever"], &names[..], &["--", "sleep", "0.02"]].concat();
        Running::start(leasehold(words).env("REDIS_URL", server.url()))
    };
    let runs: Vec<_> =
        (0..6).map(|n| run(if n % 2 == 0 { ["x", "y"] } else { ["y", "x"] })).collect();
    for run in runs {
        run.end().well();
    }
}

/// Of several names, a nested run re-enters those that are held, and acquires the others.
#[test]
fn a_nested_run_re_enters_some_and_acquires_the_others() {
    let server = RedisServer::start();
    let program = env!("CARGO_BIN_EXE_leasehold");
    let show = "echo $LEASEHOLD_LOCK $LEASEHOLD_FENCE";
    let script = format!(
        "{show}; {program} run --owner-env --try a b -- sh -c '{show}'; {program} run --owner-env c b a -- sh -c '{show}'"
    );
    let run = ["run", "a", "b", "--", "sh", "-c", &script];
    let out = finished(leasehold(run).env("REDIS_URL", server.url())).well();
    let lines: Vec<Vec<_>> = out.lines().map(|line| line.split(' ').collect()).collect();
    let [outer, same, more] = &lines[..] else { panic!("{out}") };
    assert_eq!(outer, same);
    assert_eq!(more[..3], ["c", "b", "a"]);
    assert_eq!((more[4], more[5]), (outer[3], outer[2]), "{out}");
}
