use std::collections::BTreeMap;

use leasehold_testkit::{
    RedisServer,
    sentinel::{Sentinel, SentinelGroup},
};

use super::{acknowledged, kind::Kind, site::Site};

#[test]
fn nothing_is_lost_when_a_master_is_killed_hangs_or_is_replaced() {
    println!("\n  sentinel: {}", super::run(&SentinelGroup::start()));
}

#[test]
fn acknowledged_leases_outlive_a_master_that_is_killed_or_hangs() {
    let group = SentinelGroup::start();
    for kind in [Kind::Killed, Kind::Hung] {
        println!(
            "\n  sentinel, acknowledged, {kind}: {:?}",
            acknowledged::run(&group, kind, "value")
        );
    }
}

impl Site for SentinelGroup {
    fn url(&self) -> String {
        self.url()
    }

    fn servers(&self) -> &[RedisServer] {
        self.servers()
    }

    fn lock(&self, _: usize) -> &'static str {
        "value"
    }

    fn master_of(&self, _: &str) -> usize {
        let master = self.master().pid();
        self.servers().iter().position(|server| server.pid() == master).expect("one of them")
    }

    fn heirs(&self, master: usize) -> Vec<usize> {
        (0..self.servers().len()).filter(|server| *server != master).collect()
    }

    fn replace(&self, _: usize) {
        self.fail_over();
    }

    fn have_noticed(&self, _: usize) -> bool {
        self.sentinels().iter().any(agrees_that_it_is_down)
    }

    fn heal(&self) {
        self.heal();
    }
}

/// Whether a Sentinel knows of enough others that take the master for dead, too (`+odown`).
fn agrees_that_it_is_down(sentinel: &Sentinel) -> bool {
    let told = sentinel.try_query(&["SENTINEL", "MASTER", SentinelGroup::MASTER]);
    let told: BTreeMap<String, String> = told.unwrap_or_default();
    told.get("flags").is_some_and(|flags| flags.contains("o_down"))
}
