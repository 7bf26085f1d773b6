//! `leasehold ls` and `leasehold show`, on every topology.

use leasehold_testkit::{RedisCluster, RedisServer, SentinelGroup};
use serde_json::Value;

use crate::support::{Running, finished, leasehold, settled};

/// Some locks, one of them with a waiter, and what is told of them.
fn looked_at(url: &str) {
    let run = |name: &str, options: &[&str]| {
        let words = [&["run"], options, &[name, "--", "sleep", "100"]].concat();
        Running::start(leasehold(words).env("REDIS_URL", url))
    };
    let show =
        |name: &str| finished(leasehold(["show", name, "--json"]).env("REDIS_URL", url)).json();
    let _running = ["orders/1", "orders/2", "jobs/x"].map(|name| run(name, &[]));
    for name in ["orders/1", "orders/2", "jobs/x"] {
        settled(|| (show(name)["state"] == "held").then_some(()));
    }
    let _waiter = run("orders/2", &["--wait-forever"]);
    let waits =
        settled(|| Some(show("orders/2")).filter(|lock| lock["waiters"][0]["position"] == 1));
    for key in ["label", "acquisition", "waiting_for_ms", "silent_for_ms"] {
        assert!(!waits["waiters"][0][key].is_null(), "{waits}");
    }
    finished(leasehold(["run", "--min-hold", "1h", "kept", "--", "true"]).env("REDIS_URL", url))
        .well();

    let table = finished(leasehold(["ls"]).env("REDIS_URL", url)).well();
    let lines: Vec<_> = table.lines().collect();
    let names: Vec<_> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, ["LOCK", "jobs/x", "kept", "orders/1", "orders/2"], "{table}");
    let fence = lines[0].find("FENCE").unwrap();
    assert!(
        lines[1..].iter().all(|line| line[fence..].starts_with(|c: char| c.is_ascii_digit())),
        "aligned: {table}"
    );

    let listed = finished(leasehold(["ls", "orders/*", "--json"]).env("REDIS_URL", url)).well();
    let mut listed: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    listed.sort_by_key(|lock| lock["name"].to_string());
    assert_eq!(listed.len(), 2, "{listed:?}");
    for (lock, waiters) in listed.iter().zip([0, 1]) {
        assert_eq!(lock["state"], "held");
        assert_eq!(lock["waiters"].as_array().unwrap().len(), waiters);
        assert!(lock["holder"]["label"].as_str().unwrap().ends_with("/sleep"), "{lock}");
        for key in ["fence", "holds", "held_for_ms", "ttl_left_ms"] {
            assert!(lock["holder"][key].is_u64(), "{lock}");
        }
    }
    assert_eq!(finished(leasehold(["ls", "nothing/*", "--json"]).env("REDIS_URL", url)).well(), "");
}

#[test]
fn of_one_server() {
    looked_at(&RedisServer::start().url());
}

#[test]
fn of_a_master_that_sentinels_name() {
    looked_at(&SentinelGroup::start().url());
}

#[test]
fn of_a_cluster() {
    looked_at(&RedisCluster::start().url());
}

#[test]
fn people_see_the_holder_and_the_waiters() {
    let server = RedisServer::start();
    let run = |options: &[&str]| {
        let words = [&["run"], options, &["orders/1", "--", "sleep", "100"]].concat();
        Running::start(leasehold(words).env("REDIS_URL", server.url()))
    };
    let show = || finished(leasehold(["show", "orders/1"]).env("REDIS_URL", server.url())).well();
    assert!(show().contains("orders/1 is free"));
    let _holder = run(&[]);
    settled(|| show().contains("state      held").then_some(()));
    let _waiter = run(&["--wait-forever"]);
    let text = settled(|| Some(show()).filter(|text| text.contains("LAST HEARD")));
    for head in
        ["lock", "holder", "since", "ttl left", "fence", "lease", "holds", "kept idle", "waiting"]
    {
        assert!(text.lines().any(|line| line.starts_with(head)), "{head}: {text}");
    }
}

/// Names and labels of others cannot write on the terminal.
#[test]
fn control_characters_of_others_are_not_written() {
    let server = RedisServer::start();
    let name = "evil\u{1b}[2J";
    let _run = Running::start(
        leasehold(["run", name, "--", "sleep", "100"]).env("REDIS_URL", server.url()),
    );
    let table = settled(|| {
        let table = finished(leasehold(["ls"]).env("REDIS_URL", server.url())).well();
        table.contains("evil").then_some(table)
    });
    assert!(!table.contains('\u{1b}'), "{table:?}");
}

/// An empty list may be that of another namespace.
#[test]
fn an_empty_list_names_its_namespace() {
    let server = RedisServer::start();
    let ls = |words: &[&str]| {
        let ended = finished(leasehold(words).env("REDIS_URL", server.url()));
        assert_eq!(ended.out, "", "{ended:?}");
        ended.complaint(0).to_owned()
    };
    let text = ls(&["ls"]);
    assert!(text.contains("\"leasehold\"") && text.contains("--namespace"), "{text}");
    let text = ls(&["ls", "--namespace", "shop", "orders/*"]);
    assert!(text.contains("\"shop\"") && text.contains("\"orders/*\""), "{text}");
}
