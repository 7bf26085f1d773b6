use std::{collections::BTreeSet, time::Duration};

use leasehold_core::{Entropy, SystemEntropy};
use leasehold_testkit::{ChildProcess, RedisServer};
use redis::Script;

use super::scene;
use crate::support::{child, matrix::row, raw, wait};

row! {
    identities: protected, control;
    fault: "twelve processes with the same host name, service and (in containers) pid",
    right: "each draws its own identities: one of them holds the lock",
    control: "an owner made of host name and pid, which re-enters the lock of another process",
}

pub(super) const ROLE: &str = "like-others";
pub(super) const NAIVE_ROLE: &str = "naive-like-others";
const PROCESSES: usize = 12;
/// How many identities each of them draws.
const DRAWS: usize = 100;
const TTL: Duration = Duration::from_secs(30);
/// As it is in containers: one host name of a template, and the first process has number one.
const OWNER: &str = "web:1";
const ENTER: &str = "\
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'holds', 1)";

fn start(server: &RedisServer, role: &str, processes: usize) -> Vec<ChildProcess> {
    let mut children: Vec<_> =
        (0..processes).map(|_| scene::spawn(role, server, TTL, "")).collect();
    for child in &mut children {
        child.wait_for_line("ready", wait::CEILING);
    }
    scene::go(server, role);
    children
}

fn protected() -> String {
    let server = RedisServer::start();
    let mut children = start(&server, ROLE, PROCESSES);
    let outcomes: Vec<String> =
        children.iter_mut().map(|child| child.wait_for_line("tried ", wait::CEILING)).collect();
    let holders = outcomes.iter().filter(|outcome| *outcome == "held").count();
    assert_eq!(holders, 1, "{outcomes:?}");
    let drawn = children.iter().flat_map(ChildProcess::seen);
    let drawn: Vec<&str> = drawn.filter_map(|line| line.strip_prefix("identity ")).collect();
    assert_eq!(drawn.len(), PROCESSES * (DRAWS + 1));
    let distinct: BTreeSet<&str> = drawn.iter().copied().collect();
    assert_eq!(distinct.len(), drawn.len(), "an identity was drawn twice");
    format!("{} identities of {PROCESSES} processes, all distinct; 1 holder", drawn.len())
}

/// The child: draws identities, and tries the lock.
pub(super) async fn compete() {
    let (url, builder) = (child::arg("url"), scene::builder(scene::ttl()).service("same"));
    let locks = builder.connect(&url).await.expect("the server answers");
    println!("identity {}", locks.id());
    for _ in 0..DRAWS {
        println!("identity {}", SystemEntropy.runtime_id());
    }
    println!("ready");
    scene::until_go(&mut raw::connect(&url).await).await;
    let lock = locks.lock("a").expect("a name");
    let guard = lock.try_acquire().await.expect("an answer");
    println!("tried {}", if guard.is_some() { "held" } else { "busy" });
    // Nobody is to get it after another.
    std::future::pending::<()>().await;
}

fn control() -> String {
    let server = RedisServer::start();
    let mut children = start(&server, NAIVE_ROLE, 2);
    for child in &mut children {
        child.wait_for_line("read 0", wait::CEILING);
    }
    server.command(&["SET", "write", "1"]);
    for child in &mut children {
        child.read_to_end(wait::CEILING);
    }
    let value: u64 = server.query(&["GET", "value"]);
    assert_eq!(value, 1, "the control lost no increment");
    "2 holders at once; 1 of 2 increments lost".into()
}

/// The control's child: enters a lock that knows it by host name and pid, and increments a value.
pub(super) async fn compete_naively() {
    let mut raw = raw::connect(&child::arg("url")).await;
    println!("ready");
    scene::until_go(&mut raw).await;
    let script = Script::new(ENTER);
    let holds: u64 =
        script.key("naive").arg(OWNER).invoke_async(&mut raw).await.expect("an answer");
    assert!(holds > 0, "the lock is another's");
    let read = redis::cmd("GET").arg("value").query_async::<Option<u64>>(&mut raw).await;
    let read = read.expect("an answer").unwrap_or_default();
    println!("read {read}");
    while !redis::cmd("EXISTS").arg("write").query_async::<bool>(&mut raw).await.expect("an answer")
    {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    redis::cmd("SET").arg("value").arg(read + 1).exec_async(&mut raw).await.expect("an answer");
}
