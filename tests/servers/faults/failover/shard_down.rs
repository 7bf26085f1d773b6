use std::time::Duration;

use leasehold::{Guard, LockRuntime, error::AcquireError};
use leasehold_testkit::{RedisCluster, RedisServer};
use tokio::task::JoinSet;

use super::counting::{Counting, ended};
use crate::{
    cluster::scene::{a_name_for_each, key},
    faults::server::scene,
    support::{matrix::row, wait},
};

row! {
    shard_down: protected, control;
    fault: "both servers of one of three shards hang, past the ttl, under a process that uses all shards",
    right: "leases and waits there end as an outage; those of the other shards go on; later all do",
    control: "a client that renews its locks one after the other, and has no deadline",
}

const TTL: Duration = Duration::from_secs(2);
/// How many leases are held in each shard: enough that their renewals travel in batches.
const HELD: usize = 20;

fn protected() -> String {
    scene::run(async {
        let cluster = RedisCluster::with_replicas();
        let names = a_name_for_each();
        let locks = scene::connect(&cluster.url(), TTL).await;
        let mut held = Vec::new();
        for name in &names {
            held.push(hold_many(&locks, name).await);
        }
        let all: Vec<_> = names.iter().map(|name| Counting::under(name)).collect();
        let mut tasks = JoinSet::new();
        for counting in &all {
            counting.start(&locks, 2, &mut tasks);
        }
        let before = rate(&all[1..], TTL / 2).await;

        let down = RedisCluster::shard_of(&key(&names[0])).map(|number| &cluster.servers()[number]);
        // They hang, which is worse than being dead.
        for server in down {
            server.stop_signal();
        }
        // A lock of its own: a turn that goes on gives the counters to tasks of this process.
        let told = locks.lock(format!("{}}}-told", names[0])).expect("a name");
        let waits = told.acquire().outage_patience(TTL / 2);
        let told = wait::soon("the outage is told", waits);
        let (meanwhile, told) = tokio::join!(rate(&all[1..], 2 * TTL), told);
        let Err(AcquireError::Unavailable(outage)) = told else { panic!("{told:?}") };
        assert!(outage.answers_others, "{outage}");
        let lost = |guards: &[Guard]| guards.iter().filter(|guard| !guard.is_held()).count();
        assert_eq!(held.iter().map(|guards| lost(guards)).collect::<Vec<_>>(), [HELD, 0, 0]);
        all[1].goes_on().await;
        all[2].goes_on().await;

        for server in down {
            server.cont_signal();
        }
        for counting in &all {
            counting.goes_on().await;
            counting.end();
        }
        ended(tasks).await;
        let increments: u64 = all.iter().map(|counting| counting.check().increments).sum();
        format!(
            "{HELD} of {} leases lost, all of that shard; {before} grants/s of the others before, \
             {meanwhile} meanwhile; {increments} increments, none lost",
            names.len() * HELD
        )
    })
}

/// Leases in the slot of a name.
async fn hold_many(locks: &LockRuntime, name: &str) -> Vec<Guard> {
    let mut guards = Vec::new();
    for number in 0..HELD {
        guards.push(scene::take(locks, &format!("{name}}}-{number}")).await);
    }
    guards
}

/// How many grants there are in a second, over a time.
async fn rate(all: &[std::sync::Arc<Counting>], time: Duration) -> u64 {
    let count = || all.iter().map(|counting| counting.accepted()).sum::<u64>();
    let before = count();
    tokio::time::sleep(time).await;
    (count() - before) * 1_000 / u64::try_from(time.as_millis()).expect("a short time")
}

fn control() -> String {
    scene::run(async {
        let servers = [(); 3].map(|()| RedisServer::start());
        let mut shards = Vec::new();
        for server in &servers {
            let mut lock = scene::naive(server, TTL).await;
            lock.try_acquire().await.expect("an answer").expect("a free lock");
            shards.push(lock);
        }
        let key = shards[0].key();
        servers[0].stop_signal();
        let renewing = tokio::spawn(async move {
            loop {
                for lock in &mut shards {
                    lock.renew().await.expect("an answer");
                }
                tokio::time::sleep(TTL / 3).await;
            }
        });
        let is_lost = |server: &RedisServer| !server.query::<bool>(&["EXISTS", &key]);
        wait::until("the others are lost", || servers[1..].iter().all(is_lost)).await;
        assert!(!renewing.is_finished());
        renewing.abort();
        "the locks of the other two shards ran out behind the one that hangs".into()
    })
}
