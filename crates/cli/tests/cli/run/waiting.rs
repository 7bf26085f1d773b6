//! A run that waits says why, long before its wait is over.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use leasehold_testkit::{QuorumGroup, RedisServer};

use crate::support::{LOCK, Running, finished, leasehold, settled};

/// A run with a standard error that can be read while it waits.
struct Waiter {
    running: Running,
    err: PathBuf,
}

impl Waiter {
    fn start(folder: &Path, url: &str, words: &[&str]) -> Self {
        let err = folder.join("err");
        let mut command = leasehold([&["run"], words].concat());
        command.env("REDIS_URL", url).stderr(File::create(&err).unwrap());
        Self { running: Running::start(&mut command), err }
    }

    fn told(&self) -> String {
        fs::read_to_string(&self.err).unwrap()
    }

    /// Its first line.
    fn line(&self) -> String {
        settled(|| self.told().contains('\n').then(|| self.told()))
    }
}

#[test]
fn a_full_server_is_told_while_a_run_waits() {
    let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let waiter = Waiter::start(folder.path(), &server.url(), &["--wait", "1h", LOCK, "--", "true"]);
    let line = waiter.line();
    for words in ["leasehold: still waiting, for another 59m", "OOM", "raise maxmemory"] {
        assert!(line.contains(words), "no {words:?} in: {line}");
    }
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let told = waiter.err.clone();
    waiter.running.end().well();
    assert_eq!(fs::read_to_string(told).unwrap(), line, "once");
}

#[test]
fn who_holds_the_lock_is_told_while_a_run_waits() {
    let (server, folder) = (RedisServer::start(), tempfile::tempdir().unwrap());
    let (begun, end) = (folder.path().join("begun"), folder.path().join("end"));
    let script = format!(
        "touch {}; while ! test -e {}; do sleep 0.05; done",
        begun.display(),
        end.display()
    );
    let mut holder = leasehold(["run", LOCK, "--", "sh", "-c", &script]);
    let holder = Running::begun(holder.env("REDIS_URL", server.url()), &begun);
    // The other one is held by the run that waits.
    let words = ["--wait-forever", "a", LOCK, "--", "true"];
    let waiter = Waiter::start(folder.path(), &server.url(), &words);
    let line = waiter.line();
    for words in ["still waiting, without a limit", LOCK, "/sh has held it for", "(fence "] {
        assert!(line.contains(words), "no {words:?} in: {line}");
    }
    fs::write(&end, "").unwrap();
    // Said nothing while its command ran.
    assert!(holder.end().err.is_empty());
    let told = waiter.err.clone();
    waiter.running.end().well();
    assert_eq!(fs::read_to_string(told).unwrap(), line, "once");
}

/// Servers that are new count after longer than a run waits by default.
#[test]
fn a_new_quorum_is_told_while_a_run_waits() {
    let (group, folder) = (QuorumGroup::start(3), tempfile::tempdir().unwrap());
    let waiter = Waiter::start(folder.path(), &group.url(), &[LOCK, "--", "true"]);
    let line = waiter.line();
    for words in ["still waiting, for another ", "counts again in", "; wait"] {
        assert!(line.contains(words), "no {words:?} in: {line}");
    }
}

/// Only an operator joins them.
#[test]
fn servers_that_no_cluster_was_made_of_are_told_to_be_joined() {
    let start = || RedisServer::builder().tcp().arg("cluster-enabled", "yes").start();
    let servers = [start(), start(), start()];
    let places: Vec<_> =
        servers.iter().map(|server| format!("127.0.0.1:{}", server.port().unwrap())).collect();
    let url = format!("redis+cluster://{}", places.join(","));
    let ended = finished(leasehold(["run", LOCK, "--", "true"]).env("REDIS_URL", &url));
    let text = ended.complaint(78);
    assert!(text.contains("redis-cli --cluster create HOST:PORT"), "{text}");
    let doctor = finished(leasehold(["doctor"]).env("REDIS_URL", &url));
    assert_eq!(doctor.code, 2, "{doctor:?}");
    assert!(doctor.out.contains("redis-cli --cluster create HOST:PORT"), "{doctor:?}");
    assert!(!doctor.out.contains("fix"), "{doctor:?}");
}

/// Left out as it stands, it connects without TLS.
#[test]
fn a_parameter_for_tls_is_told_with_the_scheme() {
    for (pair, is_of_tls) in [("ssl=true", true), ("tls=true", true), ("timeout=5", false)] {
        let url = format!("redis://127.0.0.1:1?{pair}");
        let ended = finished(leasehold(["run", LOCK, "--", "true"]).env("REDIS_URL", &url));
        let text = ended.complaint(64);
        assert_eq!(text.contains("rediss://"), is_of_tls, "{text}");
        assert_eq!(text.contains("rediss+sentinel://"), is_of_tls, "{text}");
        assert_eq!(text.contains("TLS"), is_of_tls, "{text}");
        assert!(text.contains("leave it out"), "{text}");
    }
}

/// A login that one node refuses is not all: the others will count by themselves.
#[test]
fn one_wrong_login_of_a_new_quorum_is_told_beside_what_waiting_mends() {
    let (group, folder) = (QuorumGroup::start(3), tempfile::tempdir().unwrap());
    group.server(0).command(&["CONFIG", "SET", "requirepass", "other"]);
    let waiter = Waiter::start(folder.path(), &group.url(), &[LOCK, "--", "true"]);
    let line = waiter.line();
    for words in ["still waiting", "--password-file", "wait; it stays out"] {
        assert!(line.contains(words), "no {words:?} in: {line}");
    }
}
