//! Servers that take everything and answer nothing: each command of each store ends by its deadline, since a runtime
//! sets no timer of its own for that.

use std::{future::Future, sync::Arc, time::Duration};

use leasehold_core::{
    Clock, Entropy, Fence, LockName, LockStore, NamePattern, QuorumSettings, Replication,
    StoreError, SystemClock, SystemEntropy,
    store::{Heartbeat, ScanCursor},
    within,
};
use leasehold_quorum::connect_quorum;
use leasehold_redis::{ClusterStore, RedisConfig, RedisStore};
use leasehold_testkit::{
    QuorumGroup, RedisCluster, RedisServer, SentinelGroup,
    contract::{Calls, alice, bob, ttl},
};
use tokio::{runtime::Handle, task::JoinSet};

/// What a command may take.
const DEADLINE: Duration = Duration::from_millis(300);

/// What shows that a command would never end, on a machine under whatever load.
const NEVER: Duration = Duration::from_secs(60);

fn config(url: &str) -> RedisConfig {
    RedisConfig::new(url).expect("the test has an address")
}

/// A command that is still on its way after [`NEVER`] fails the test.
fn ends<T: Send + 'static>(
    commands: &mut JoinSet<()>,
    what: &'static str,
    command: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) {
    commands.spawn(async move {
        let ended = within(&SystemClock, SystemClock.now() + NEVER, command).await;
        assert!(ended.is_some(), "{what} never ends");
    });
}

/// Sends one command of each kind, also those that need acknowledgements, and waits until all have ended.
async fn all_end(store: &Arc<dyn LockStore>, round: u64) {
    let name = LockName::new("orders/42").expect("a name");
    let calls = Calls::new(Arc::clone(store), &name, SystemClock.now() + DEADLINE);
    let (fence, number) = (Fence::try_from(7_u64).expect("a fence"), 10 * round);
    let acks = Replication::wait(1, Duration::from_millis(100)).expect("in its range");
    let beat = Heartbeat { number: 1, claim_window: Duration::from_secs(3) };
    let mut commands = JoinSet::new();
    for calls in [calls.clone(), calls.needing(acks)] {
        let c = calls.clone();
        let acquire = async move { c.acquire(alice(number + 1), ttl(60), None).await };
        ends(&mut commands, "an acquire", acquire);
        let c = calls.clone();
        let wait = async move { c.wait(bob(number + 2), ttl(60), None, beat).await };
        ends(&mut commands, "an acquire that waits", wait);
        let c = calls.clone();
        let hold = async move { c.hold(alice(1), fence, (2, 1), ttl(60)).await };
        ends(&mut commands, "a count of holds", hold);
        let c = calls.clone();
        let renew = async move { c.renew(&[c.renewal(alice(1), fence, ttl(60))]).await };
        ends(&mut commands, "a renewal", renew);
    }
    let calls = Calls::new(Arc::clone(store), &name, SystemClock.now() + DEADLINE);
    let c = calls.clone();
    let beats = async move { c.heartbeat(&[c.waiter(bob(2), ttl(60), None, beat)]).await };
    ends(&mut commands, "a heartbeat", beats);
    let c = calls.clone();
    ends(&mut commands, "a release", async move { c.release(alice(1), fence, None).await });
    let c = calls.clone();
    let next = async move {
        let next = c.waiter(alice(number + 3), ttl(60), None, beat);
        c.release_and_queue(alice(2), fence, None, &next).await
    };
    ends(&mut commands, "a release that queues anew", next);
    let c = calls.clone();
    ends(&mut commands, "a withdrawal", async move { c.withdraw(bob(2)).await });
    let c = calls.clone();
    ends(&mut commands, "a look", async move { c.inspect().await });
    let c = calls.clone();
    let every = NamePattern::new("*").expect("a pattern");
    let scan = async move { c.scan(&every, &ScanCursor::default()).await };
    ends(&mut commands, "a scan", scan);
    ends(&mut commands, "a forced end", async move { calls.force_release(alice(1), fence).await });
    while let Some(ended) = commands.join_next().await {
        ended.unwrap();
    }
}

/// Uses the store while its servers answer, then while they are stopped: at first on connections that stand, then
/// also on those that it has to make anew.
async fn all_end_when_nothing_is_answered(store: Arc<dyn LockStore>, servers: &[&RedisServer]) {
    all_end(&store, 1).await;
    for server in servers {
        server.stop_signal();
    }
    for round in 2..5 {
        all_end(&store, round).await;
    }
    for server in servers {
        server.cont_signal();
    }
}

async fn redis_store(config: &RedisConfig) -> Arc<dyn LockStore> {
    let id = SystemEntropy.runtime_id();
    let store = RedisStore::connect(config, Arc::new(SystemClock), Handle::current(), id).await;
    Arc::new(store.expect("the server answers"))
}

#[tokio::test]
async fn on_redis() {
    let server = RedisServer::start();
    all_end_when_nothing_is_answered(redis_store(&config(&server.url())).await, &[&server]).await;
}

#[tokio::test]
async fn behind_sentinels_that_answer() {
    let group = SentinelGroup::start();
    let servers: Vec<_> = group.servers().iter().collect();
    all_end_when_nothing_is_answered(redis_store(&config(&group.url())).await, &servers).await;
}

#[tokio::test]
async fn on_a_cluster() {
    let cluster = RedisCluster::start();
    let (clock, id) = (Arc::new(SystemClock), SystemEntropy.runtime_id());
    let store = ClusterStore::connect(&config(&cluster.url()), clock, Handle::current(), id).await;
    let servers: Vec<_> = cluster.servers().iter().collect();
    let store = Arc::new(store.expect("the Cluster answers"));
    all_end_when_nothing_is_answered(store, &servers).await;
}

#[tokio::test]
async fn on_a_quorum() {
    let group = QuorumGroup::start(3);
    group.let_vote();
    let (clock, id) = (Arc::new(SystemClock), SystemEntropy.runtime_id());
    let quorum = QuorumSettings::default().node_timeout(Duration::from_secs(10));
    let config = config(&group.url()).quorum(quorum.expect("in its range"));
    let store = connect_quorum(&config, clock, Handle::current(), id).await;
    let servers: Vec<_> = group.servers().collect();
    let store = Arc::new(store.expect("the quorum answers"));
    all_end_when_nothing_is_answered(store, &servers).await;
}
