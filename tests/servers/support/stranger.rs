//! A node of another Cluster, which takes the address of one that died.

use leasehold_testkit::{Patience, RedisServer};

use super::wait;

/// The epoch of the other Cluster: it has seen more changes than any of a test.
const EPOCH: &str = "50";

/// A Cluster of one node that owns all slots, at the address of a server that was killed.
///
/// # Panics
///
/// Panics if it does not start, or takes no commands in the end.
pub(crate) fn at_address_of(dead: &RedisServer) -> RedisServer {
    let node = with_all_slots();
    let port = dead.port().expect("a node has a port");
    node.set_for_restart("port", &port.to_string());
    node.restart();
    until_ok(&node);
    node
}

/// A Cluster of one node, with a replica: a server that was one of another Cluster, and keeps its id.
///
/// # Panics
///
/// Panics if it does not start, or the replica does not follow it in the end.
pub(crate) fn of_replica(replica: &RedisServer) -> RedisServer {
    let node = with_all_slots();
    until_ok(&node);
    let [id, own]: [String; 2] = [&node, replica].map(|server| server.query(&["CLUSTER", "MYID"]));
    let port = node.port().expect("a node has a port").to_string();
    replica.command(&["CLUSTER", "RESET", "SOFT"]);
    replica.command(&["CLUSTER", "MEET", "127.0.0.1", &port]);
    let follows = || replica.try_query::<redis::Value>(&["CLUSTER", "REPLICATE", &id]).ok();
    Patience::of(wait::CEILING).until(follows).expect("it knows its master");
    let is_named = |server: &RedisServer| {
        let slots = server.query::<redis::Value>(&["CLUSTER", "SLOTS"]);
        let bytes = format!("{slots:?}");
        bytes.contains(&own) && bytes.contains(&id)
    };
    let are_one = || (is_named(&node) && is_named(replica)).then_some(());
    Patience::of(wait::CEILING).until(are_one).expect("both know both");
    node
}

fn with_all_slots() -> RedisServer {
    let node = RedisServer::builder().cluster_node().start();
    node.command(&["CLUSTER", "SET-CONFIG-EPOCH", EPOCH]);
    let slots: Vec<String> = (0..16_384).map(|slot| slot.to_string()).collect();
    let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
    node.command(&words.collect::<Vec<_>>());
    node
}

fn until_ok(node: &RedisServer) {
    let is_ok = || info(node).contains("cluster_state:ok").then_some(());
    Patience::of(wait::CEILING).until(is_ok).expect("it takes commands");
}

/// How often a server was asked for the owners of the slots.
pub(crate) fn looks(server: &RedisServer) -> u64 {
    // Before Redis 7, all subcommands are counted together: two for each look.
    let asked = ["cluster|slots", "cluster"].map(|command| server.calls(command));
    if asked[0] > 0 { asked[0] } else { asked[1] }
}

fn info(node: &RedisServer) -> String {
    node.try_query(&["CLUSTER", "INFO"]).unwrap_or_default()
}
