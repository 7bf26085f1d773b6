//! What operators do, on a master that Sentinels name, a Cluster, and a quorum.

use leasehold_testkit::{QuorumGroup, RedisCluster, SentinelGroup};
use serde_json::Value;

use crate::support::{Finished, LOCK, Running, Terminal, finished, leasehold, settled};

const PROGRAM: &str = env!("CARGO_BIN_EXE_leasehold");

fn ask(url: &str, words: &[&str]) -> Finished {
    finished(leasehold(words).env("REDIS_URL", url))
}

fn show(url: &str, name: &str) -> Value {
    ask(url, &["show", name, "--json"]).json()
}

fn run(url: &str, words: &[&str]) -> Running {
    Running::start(leasehold([&["run"], words].concat()).env("REDIS_URL", url))
}

/// Everything but `ls` and `show`, which `look.rs` has.
fn operated(url: &str, servers: usize) {
    let holder = run(url, &["a", LOCK, "--", "sleep", "100"]);
    settled(|| (show(url, LOCK)["state"] == "held").then_some(()));
    ended_by_force(url, holder);
    nested(url);
    seen_by_doctor(url, servers);
    measured(url);
}

/// The holder learns of it, and the one who waits gets the lock.
fn ended_by_force(url: &str, holder: Running) {
    let held = show(url, LOCK)["holder"]["fence"].as_u64().unwrap();
    let tried = ask(url, &["run", "--try", LOCK, "--", "true"]);
    assert!(tried.complaint(75).contains("/sleep has held it"), "{tried:?}");
    let next = run(url, &["--wait-forever", LOCK, "--", "sh", "-c", "echo $LEASEHOLD_FENCE"]);
    let mut top = Terminal::start(&[PROGRAM, "top"], [("REDIS_URL", url.to_owned())]);
    top.wait_for("both locks", |screen| {
        screen.contains("2 locks") && screen.contains(LOCK) && screen.contains("/sleep")
    });
    top.keys("q");
    assert_eq!(top.code(), Some(0));
    let fence: u64 = ask(url, &["release", LOCK, "--yes"]).well().trim().parse().unwrap();
    assert!(fence > held);
    assert_eq!(holder.end().code, 76);
    let next: u64 = next.end().well().trim().parse().unwrap();
    assert!(next > held);
    assert_eq!(show(url, "a")["state"], "free");
}

fn nested(url: &str) {
    let script =
        format!("{PROGRAM} run --owner-env a -- {PROGRAM} run --owner-env --try {LOCK} a -- true");
    ask(url, &["run", "a", LOCK, "--", "sh", "-c", &script]).well();
}

fn seen_by_doctor(url: &str, servers: usize) {
    let ended = ask(url, &["doctor", "--json"]);
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    let code = match document["worst"].as_str() {
        None | Some("notice") => 0,
        Some("warning") => 1,
        Some(_) => 2,
    };
    assert_eq!(ended.code, code, "{document}");
    let examined = document["servers"].as_array().unwrap();
    assert_eq!(examined.len(), servers, "{document}");
    assert!(examined.iter().all(|server| server["round_trip_us"].is_u64()), "{document}");
    assert!(ask(url, &["doctor"]).out.contains("examined:"));
}

fn measured(url: &str) {
    let document = ask(url, &["bench", "--time", "1s", "--json"]).json();
    for (key, figures) in document.as_object().unwrap() {
        assert!(figures["per_second"].as_f64().unwrap() > 0.0, "{key}: {document}");
    }
    assert_eq!(document.as_object().unwrap().len(), 5);
}

#[test]
fn on_a_master_that_sentinels_name() {
    let group = SentinelGroup::start();
    // The replicas are told of as those of the master.
    operated(&group.url(), 1);
}

#[test]
fn on_a_cluster() {
    let cluster = RedisCluster::start();
    operated(&cluster.url(), cluster.masters().len());
}

#[test]
fn on_a_quorum() {
    let group = QuorumGroup::start(3);
    group.let_vote();
    operated(&group.url(), 3);
}

/// New servers count at once when somebody states that nobody has used them, and only then.
#[test]
fn a_new_quorum_is_begun_by_a_statement() {
    let group = QuorumGroup::start(3);
    let url = group.url();
    let init = ["quorum", "init", "--yes"];
    assert!(ask(&url, &["quorum", "init"]).complaint(64).contains("--yes"));
    let single = group.server(0).url();
    assert!(ask(&single, &init).complaint(78).contains("redis+quorum://"));
    let mut asked = Terminal::start(&[PROGRAM, "quorum", "init"], [("REDIS_URL", url.clone())]);
    asked.shows("[y/N]");
    asked.keys("n\n");
    assert_eq!(asked.code(), Some(0));
    assert!(group.servers().all(|server| server.query::<Vec<String>>(&["KEYS", "*"]).is_empty()));
    assert!(ask(&url, &init).complaint(0).contains("count from now on"));
    ask(&url, &["run", LOCK, "--", "true"]).well();
    let again = ask(&url, &init);
    let text = again.complaint(78);
    assert!(text.contains("not new") && text.contains("127.0.0.1"), "{text}");
}

/// With one of three servers away, everything goes on; with two, nothing is granted.
#[test]
fn on_a_quorum_with_servers_away() {
    let group = QuorumGroup::start(3);
    group.let_vote();
    let url = group.url();
    group.kill(2);
    ask(&url, &["run", LOCK, "--", "true"]).well();
    ask(&url, &["ls"]).well();
    assert_eq!(show(&url, LOCK)["state"], "free");
    let doctor = ask(&url, &["doctor"]);
    assert!(doctor.code > 0 && doctor.out.contains("reach"), "{doctor:?}");
    group.kill(1);
    let refused = ask(&url, &["run", "--wait", "1s", LOCK, "--", "echo", "run"]);
    assert_eq!((refused.code, &*refused.out), (69, ""), "{refused:?}");
}
