//! The examples of jobs end well, in this process and on a server, and say what is wrong with a wrong
//! address.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use leasehold_testkit::{Patience, RedisServer};

/// What a run takes at most, on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_secs(90);

#[test]
fn a_scheduled_job_runs_once_in_a_fleet_and_survives_a_crash() {
    let reported = ["12 periods", "skipped", "instance 0 died in a run", "All invariants hold."];
    let here = finished(start("scheduled_job", None));
    assert_reported(&here, &reported, "in this process");
    let server = RedisServer::builder().tcp().start();
    for _ in 0..2 {
        let there = finished(start("scheduled_job", Some(&server.url())));
        assert_reported(&there, &reported, "in processes of their own");
    }
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}

#[test]
fn a_leader_steps_down_and_its_late_write_is_refused() {
    let reported =
        ["4 candidates", "of one leader at a time", "late write  refused", "All invariants hold."];
    assert_reported(&finished(start("leader", None)), &reported, "in this process");
    let server = RedisServer::start();
    let copies = [(); 2].map(|()| start("leader", Some(&server.url())));
    for copy in copies {
        assert_reported(&finished(copy), &reported, "on Redis");
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

/// An example that cargo built along with this test.
fn program(example: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    let profile =
        test.parent().and_then(Path::parent).expect("tests are built into <profile>/deps");
    let program = profile.join("examples").join(format!("{example}{}", env::consts::EXE_SUFFIX));
    assert!(
        program.is_file(),
        "{} is missing; `cargo test` builds it, `cargo test --test …` needs \
         `cargo build --examples` before",
        program.display()
    );
    program
}

fn start(example: &str, url: Option<&str>) -> Child {
    let mut command = Command::new(program(example));
    command.env_remove("REDIS_URL").envs(url.map(|url| ("REDIS_URL", url)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the example starts")
}

/// What the program wrote until it ended; its output is small enough to stay in the pipe.
fn finished(mut child: Child) -> Output {
    let ended = Patience::of(LIMIT).until(|| child.try_wait().expect("a child can be asked"));
    if ended.is_none() {
        child.kill().expect("a child can be killed");
    }
    let output = child.wait_with_output().expect("a child can be read");
    let (report, error) = (text(&output.stdout), text(&output.stderr));
    assert!(ended.is_some(), "not finished within {LIMIT:?}: {report}{error}");
    output
}

fn assert_reported(output: &Output, lines: &[&str], place: &str) {
    let (report, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{report}{error}");
    for line in lines.iter().chain([&place]) {
        assert!(report.contains(line), "{line}: {report}{error}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
