//! A node of a Cluster tells a runtime on its sharded channel if it listens there, and else on its plain one.

use std::sync::Arc;

use leasehold_core::{
    Clock, Entropy, Fence, LockName, LockStore, SystemClock, SystemEntropy,
    store::{Heartbeat, Push},
};
use leasehold_redis::ClusterStore;
use leasehold_testkit::{
    Patience, RedisServer,
    cluster::{RedisCluster, slot_of},
    contract::{Calls, PushLog, alice, bob, secs, ttl},
    proxy::script_of_commands,
};
use redis::{Connection, Value, cmd};
use tokio::{runtime::Handle, task::block_in_place};

use super::support::{PATIENCE, config, granted};

const ALICE: &str = "00000000-0000-0000-0000-00000000000a:7";
const BOB: &str = "00000000-0000-0000-0000-00000000000b:7";

/// The keys of the lock.
const KEYS: [&str; 4] = [
    "leasehold:{a}:lease",
    "leasehold:{a}:queue",
    "leasehold:{a}:waiters",
    "leasehold:{a}:withdrawn",
];

/// A master of a Cluster with the lock.
struct Node {
    cluster: RedisCluster,
    owner: usize,
    connection: Connection,
}

impl Node {
    fn start() -> Self {
        let cluster = RedisCluster::of_masters(2);
        let owner = cluster.master_of(KEYS[0]);
        let connection = connect(&cluster.masters()[owner]);
        Self { cluster, owner, connection }
    }

    fn server(&self) -> &RedisServer {
        &self.cluster.masters()[self.owner]
    }

    /// A hash tag of a slot of a master.
    fn tag_of(&self, master: usize) -> String {
        let mut tags = (0..).map(|number| format!("{{{number}}}"));
        tags.find(|tag| self.cluster.master_of(tag) == master).expect("some number")
    }

    fn run(&mut self, tag: &str, words: &[&str]) {
        let channels = format!("leasehold:runtime:{tag}");
        let mut call = cmd("EVAL");
        call.arg(script_of_commands()).arg(KEYS.len()).arg(&KEYS).arg(3_600_000).arg(channels);
        call.arg(&["as", "60000", "60000", "app"]).arg(words);
        let answer: Value = call.query(&mut self.connection).expect("no error of the call");
        let Value::Array(answers) = answer else { panic!("{answer:?}") };
        assert_eq!(answers.len(), 1, "{answers:?}");
    }

    /// Alice hands the lock over to Bob; how many messages went to the sharded and to the plain channel.
    fn hand_over(&mut self, tag: &str) -> [u64; 2] {
        let before = self.published();
        self.run(tag, &["acquire", ALICE, "0", "1"]);
        self.run(tag, &["acquire", BOB, "0", "1"]);
        let lease: String = self.server().query(&["GET", KEYS[0]]);
        let fence = lease.split(' ').nth(4).expect("a lease").to_owned();
        self.run(tag, &["release", ALICE, &fence]);
        let lease: String = self.server().query(&["GET", KEYS[0]]);
        assert!(lease.contains(BOB), "{lease}");
        self.server().command(&["DEL", KEYS[0]]);
        let after = self.published();
        [after[0] - before[0], after[1] - before[1]]
    }

    /// How many messages were published, on sharded and on plain channels.
    fn published(&self) -> [u64; 2] {
        let stats: String = self.server().query(&["INFO", "commandstats"]);
        ["cmdstat_spublish:", "cmdstat_publish:"].map(|name| {
            let line = stats.lines().find_map(|line| line.strip_prefix(name));
            let field = |name: &str| {
                let of = |line: &str| {
                    line.split(',').find_map(|part| part.strip_prefix(name)?.parse().ok())
                };
                line.and_then(of).unwrap_or(0_u64)
            };
            field("calls=") - field("failed_calls=")
        })
    }
}

fn connect(server: &RedisServer) -> Connection {
    let client = redis::Client::open(server.url()).expect("an address");
    client.get_connection().expect("a connection")
}

/// Sharded channels came with Redis 7.0.
fn has_sharded_channels(server: &RedisServer) -> bool {
    !server.query::<String>(&["INFO", "server"]).contains("redis_version:6.")
}

#[test]
fn a_runtime_is_told_where_it_listens() {
    let mut node = Node::start();
    let (own, other) = (node.tag_of(node.owner), node.tag_of(1 - node.owner));
    assert_eq!(slot_of(&own), slot_of(&format!("leasehold:runtime:{}{own}", &BOB[..36])));
    assert_eq!(node.hand_over(""), [0, 1], "without a tag");
    if !has_sharded_channels(node.server()) {
        assert_eq!(node.hand_over(&own), [0, 1], "there are no sharded channels");
        return;
    }
    assert_eq!(node.hand_over(&own), [1, 1], "nobody listens at the node");
    assert_eq!(node.hand_over(&other), [0, 1], "the node does not own that slot");
    let mut listening = connect(node.server());
    let channel = format!("leasehold:runtime:{}{own}", &BOB[..36]);
    cmd("SSUBSCRIBE").arg(&channel).exec(&mut listening).expect("a subscription");
    assert_eq!(node.hand_over(&own), [1, 0], "it listens at the node");
    assert_eq!(node.hand_over(&other), [0, 1], "another process knows other slots of the node");
}

/// The place of each task that waits, at any master, is asked for again when messages may have been lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_subscription_that_was_cut_may_have_missed_messages() {
    let node = block_in_place(Node::start);
    if !block_in_place(|| has_sharded_channels(node.server())) {
        return;
    }
    let (config, clock) = (config(&node.cluster.url()), Arc::new(SystemClock));
    let id = SystemEntropy.runtime_id();
    let store = ClusterStore::connect(&config, clock, Handle::current(), id).await;
    let store: Arc<dyn LockStore> = Arc::new(store.expect("the Cluster lets everybody in"));
    let name = LockName::new("a").expect("a name");
    let calls = Calls::new(Arc::clone(&store), &name, SystemClock.now() + PATIENCE);
    let pushes = PushLog::listen(&*store, bob(7).runtime()).await;
    granted(&calls, alice(7)).await;
    let beat = Heartbeat { number: 1, claim_window: secs(60) };
    calls.wait(bob(7), ttl(60), None, beat).await.expect("a place");
    let channels =
        || -> Vec<String> { block_in_place(|| node.server().query(&["PUBSUB", "SHARDCHANNELS"])) };
    let one = async || <[String; 1]>::try_from(channels()).ok();
    let [channel] = Patience::of(PATIENCE).until_async(one).await.expect("it listens there");
    let (fence, text) = (7_u64, format!("force-released {} 7 a", bob(7)));
    let heard: u32 = block_in_place(|| node.server().query(&["SPUBLISH", &channel, &text]));
    assert_eq!(heard, 1);
    let fence = Fence::try_from(fence).expect("a token");
    assert_eq!(pushes.next().await, Push::ForceReleased { name, id: bob(7), fence });
    block_in_place(|| node.server().command(&["CLIENT", "KILL", "TYPE", "pubsub"]));
    assert_eq!(pushes.next().await, Push::Listening);
}
