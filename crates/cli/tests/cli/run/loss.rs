//! When the lease is lost, the command ends, and all that it started.

use std::path::Path;

use leasehold_testkit::{RedisCluster, RedisServer};

use crate::support::{Finished, LOCK, Running, finished, leasehold, settled};

/// Takes the lease away from a run of a script, which has to create the file.
fn taken_away(server: &RedisServer, options: &[&str], script: &str, file: &Path) -> Finished {
    let words = [&["run"], options, &[LOCK, "--", "sh", "-c", script]].concat();
    let running = Running::begun(leasehold(words).env("REDIS_URL", server.url()), file);
    finished(leasehold(["release", LOCK, "--yes"]).env("REDIS_URL", server.url())).well();
    running.end()
}

#[test]
fn a_lost_lease_ends_the_command_with_a_code_of_its_own() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!(
        "trap 'echo told; exit 0' TERM; touch {}; while :; do sleep 0.02; done",
        file.display()
    );
    let ended = taken_away(&server, &[], &script, &file);
    assert_eq!(ended.out, "told\n");
    let text = ended.last_complaint(76);
    assert!(text.contains(LOCK) && text.contains("lost"), "{text}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(taken_away(&server, &["-E", "lost=3"], &script, &file).code, 3);
}

/// The command ends at once, and leaves a process behind that ignores SIGTERM.
#[test]
fn what_the_command_started_is_killed_after_the_grace() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let (file, pid) = (folder.path().join("begun"), folder.path().join("pid"));
    let script = format!(
        "(trap '' TERM; exec sh -c 'echo $$ >{1}; touch {0}; while :; do sleep 0.02; done') & wait",
        file.display(),
        pid.display()
    );
    assert_eq!(taken_away(&server, &["--grace", "200ms"], &script, &file).code, 76);
    let pid = std::fs::read_to_string(pid).unwrap();
    settled(|| is_gone(pid.trim()).then_some(()));
}

/// Whether a process has ended, or waits only to be reaped.
pub(crate) fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'))
}

#[test]
fn a_command_that_ignores_the_loss_is_killed_after_the_grace() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("trap '' TERM; touch {}; while :; do sleep 0.02; done", file.display());
    assert_eq!(taken_away(&server, &["--grace", "200ms"], &script, &file).code, 76);
}

/// The server goes away, and the lease ends by the clock.
#[test]
fn an_outage_ends_the_command_with_its_lease() {
    let server = RedisServer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let mut command = leasehold(["run", "--ttl", "500ms", LOCK, "--", "sh", "-c", &script]);
    let running = Running::begun(command.env("REDIS_URL", server.url()), &file);
    server.kill();
    assert!(running.end().last_complaint(76).contains("lost"));
}

/// The server has another password from then on, or certificates of another authority: each connection that
/// is made anew is refused.
#[test]
fn a_refusal_that_ends_a_lease_is_told_as_its_cause() {
    let server = RedisServer::builder().password("hush-hush").start();
    let other_password = || drop(server.command(&["CONFIG", "SET", "requirepass", "another"]));
    let text = refused(&server, &server.url_with("", "hush-hush", 0), &[], other_password);
    assert!(text.contains("WRONGPASS"), "{text}");

    let server = RedisServer::builder().tls().start();
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, server.ca_pem().unwrap()).unwrap();
    let other = RedisServer::builder().tls().start();
    let other_ca = || std::fs::write(&ca, other.ca_pem().unwrap()).unwrap();
    let text = refused(&server, &server.url(), &["--tls-ca", &ca.display().to_string()], other_ca);
    assert!(text.contains("--tls-ca"), "{text}");
}

/// What a run says whose connections are cut after a change that lets it make no other.
fn refused(server: &RedisServer, url: &str, options: &[&str], change: impl FnOnce()) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("begun");
    let script = format!("touch {}; exec sleep 100", file.display());
    let run = ["run", "--ttl", "2s", LOCK, "--", "sh", "-c", &script];
    let words = [options, &run].concat();
    let mut command = leasehold(words);
    let mut running = Running::begun(command.env("REDIS_URL", url), &file);
    change();
    settled(|| {
        // Again and again: one may have been under way.
        for kind in ["normal", "pubsub"] {
            server.command(&["CLIENT", "KILL", "TYPE", kind]);
        }
        running.has_ended().then_some(())
    });
    running.end().last_complaint(76).to_owned()
}

/// The other nodes answer, and only the one with the locks does not.
#[test]
fn a_node_of_a_cluster_that_dies_under_a_lease_is_told_as_the_cause_of_its_loss() {
    let cluster = RedisCluster::start();
    let folder = tempfile::tempdir().unwrap();
    let owner = |name: &String| RedisCluster::owner_of(&format!("leasehold:{{{name}}}:lease")) == 0;
    let names = (0..).map(|number| format!("jobs/{number}")).filter(owner);
    let begin = |(ttl, name): (&&str, String)| {
        let file = folder.path().join(ttl);
        let script = format!("touch {}; exec sleep 100", file.display());
        let mut command = leasehold(["run", "--ttl", ttl, &name, "--", "sh", "-c", &script]);
        Running::begun(command.env("REDIS_URL", cluster.url()), &file)
    };
    let running: Vec<_> =
        ["500ms", "1s", "2s", "3s", "4s", "6s"].iter().zip(names).map(begin).collect();
    let node = format!("127.0.0.1:{}", cluster.servers()[0].port().unwrap());
    cluster.kill(0);
    for running in running {
        let ended = running.end();
        let text = ended.last_complaint(76);
        assert!(text.contains("cannot connect") && text.contains(&node), "{text}");
    }
}
