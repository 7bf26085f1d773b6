use std::time::Duration;

use leasehold::LockRuntime;
use leasehold_testkit::{Patience, RedisCluster, RedisServer};

use crate::{
    faults::server::scene::{self, LEASE},
    support::{
        crew::{Crew, Plan},
        lease,
        matrix::row,
        stranger, wait,
    },
};

row! {
    cluster_address_reused: protected, control;
    fault: "a node of another Cluster, with a far higher epoch, takes the address of a master that died",
    right: "all processes stay with their own Cluster, and a new one finds it; nothing is written to the other",
    control: "a client that believes who answers at one of its addresses",
}

/// A Cluster one of whose masters has died and is replaced, and the stranger at its address.
fn begin(at_work: impl FnOnce(&RedisCluster)) -> (RedisCluster, RedisServer) {
    let cluster = RedisCluster::with_replicas();
    at_work(&cluster);
    let [old, new] = RedisCluster::shard_of(LEASE);
    cluster.kill(old);
    let promoted = || cluster.servers()[new].is_master().then_some(());
    Patience::of(wait::CEILING).until(promoted).expect("the replica takes over");
    let stranger = stranger::at_address_of(&cluster.servers()[old]);
    (cluster, stranger)
}

fn protected() -> String {
    let mut crew = None;
    let (cluster, stranger) = begin(|cluster| {
        let at_work = Crew::start(&Plan::PROTECTED, &cluster.url());
        at_work.work(20);
        crew = Some(at_work);
    });
    let mut crew = crew.expect("it is at work");
    crew.work(20);
    let [_, new] = RedisCluster::shard_of(LEASE);
    for _ in 0..2 {
        // Who misses an answer asks all addresses, that of the stranger too.
        let before = stranger::looks(&stranger);
        cluster.servers()[new].stop_signal();
        wait::block_until("the stranger is asked", || stranger::looks(&stranger) > before + 4);
        cluster.servers()[new].cont_signal();
        crew.work(20);
    }
    crew.join(&cluster.url(), 1);
    crew.work(50);
    let finished = crew.finish();
    let found = |found| panic!("{found:#?}");
    finished.history.check_strictly().unwrap_or_else(found);
    assert_eq!(stranger.query::<u64>(&["DBSIZE"]), 0, "the stranger's Cluster was used");
    scene::leaves_nothing(&cluster.servers()[new]);
    format!("{}; nothing at the other Cluster", finished.right())
}

fn control() -> String {
    let (cluster, stranger) = begin(|_| ());
    let [old, new] = RedisCluster::shard_of(LEASE);
    let (own, other) = (&cluster.servers()[new], &stranger);
    let url = |server: &RedisServer| {
        format!("redis+cluster://127.0.0.1:{}", server.port().expect("a node has a port"))
    };
    // The other one listens where that master did.
    let (home, reused) = (url(own), url(&cluster.servers()[old]));
    scene::run(async {
        let connect = async |url: &str| {
            let builder = LockRuntime::builder().ttl(Duration::from_secs(10));
            builder.connect(url).await.expect("a Cluster")
        };
        let (stays, moves) = (connect(&home).await, connect(&reused).await);
        let held = scene::take(&stays, "value").await;
        let also = scene::take(&moves, "value").await;
        assert!(lease::is_held(own, LEASE) && lease::is_held(other, LEASE));
        assert!(held.is_held() && also.is_held(), "the control came to no harm");
    });
    "two holders at once, in two Clusters".into()
}
