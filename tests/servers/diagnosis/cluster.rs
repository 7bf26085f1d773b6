//! A Cluster: every master is examined, and so are its slots.

use std::time::Duration;

use leasehold::{
    LockRuntime,
    diagnosis::{Severity, Strictness, Topic},
};
use leasehold_testkit::{Patience, RedisServer, cluster::RedisCluster};
use redis::Value;

use super::{about, diagnose, place, tells, the_one};
use crate::support::wait;

async fn impatient(url: &str) -> LockRuntime {
    let builder = LockRuntime::builder().strictness(Strictness::Ignore);
    let builder = builder.connect_timeout(Duration::from_secs(3));
    builder.connect(url).await.expect("a runtime")
}

fn places<'a>(servers: impl IntoIterator<Item = &'a RedisServer>) -> Vec<String> {
    let mut places: Vec<_> = servers.into_iter().map(|server| place(server.port())).collect();
    places.sort();
    places
}

fn sorted(servers: &[String]) -> Vec<String> {
    let mut servers = servers.to_vec();
    servers.sort();
    servers
}

#[tokio::test]
async fn every_master_is_examined() {
    let cluster = RedisCluster::shared();
    let diagnosis = diagnose(&cluster.url()).await;
    let examined: Vec<_> = diagnosis.servers().iter().map(|one| one.server.clone()).collect();
    assert_eq!(sorted(&examined), places(cluster.masters()));
    // One finding about all masters.
    let finding = the_one(&diagnosis, Topic::Replicas);
    tells(finding, Severity::Warning, "", &["has no replica", "start a replica"]);
    assert_eq!(sorted(&finding.servers), places(cluster.masters()));
    let finding = the_one(&diagnosis, Topic::Cluster);
    tells(finding, Severity::Warning, "", &["cluster-require-full-coverage is yes"]);
    assert!(about(&diagnosis, Topic::Rights).is_empty(), "{diagnosis}");
    assert!(about(&diagnosis, Topic::Scripts).is_empty(), "{diagnosis}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_of_every_shard_are_counted() {
    let cluster = RedisCluster::with_replicas();
    let locks = impatient(&cluster.url()).await;
    let diagnosis = locks.diagnose().await;
    assert!(diagnosis.servers().iter().all(|one| one.replicas == Some(1)), "{diagnosis}");
    assert!(about(&diagnosis, Topic::Cluster).is_empty(), "{diagnosis}");

    // A user who may read no more than locks need.
    let rights = "on >s3cret ~* &* +@all -info -role -config";
    for server in cluster.servers() {
        let words = ["ACL", "SETUSER", "app"].into_iter().chain(rights.split_whitespace());
        server.command(&words.collect::<Vec<_>>());
    }
    let url = cluster.url().replace("://", "://app:s3cret@");
    let restricted = impatient(&url).await;
    let counted = || async {
        let diagnosis = restricted.diagnose().await;
        assert!(!diagnosis.to_string().contains("s3cret"), "{diagnosis}");
        // A replica counts once the nodes have heard that it has got something.
        diagnosis.servers().iter().all(|one| one.replicas == Some(1)).then_some(diagnosis)
    };
    let diagnosis = Patience::of(wait::CEILING).until_async(counted).await;
    let diagnosis = diagnosis.expect("CLUSTER SLOTS tells of the replicas");
    assert_eq!(about(&diagnosis, Topic::NotExamined).len(), 2, "{diagnosis}");

    // A shard whose replica is gone.
    cluster.kill(usize::from(RedisCluster::MASTERS));
    let alone = || async {
        let diagnosis = locks.diagnose().await;
        let found = about(&diagnosis, Topic::Replicas);
        let mut found = found.into_iter().filter(|one| one.what.contains("has no replica"));
        found.next().map(|one| one.servers.clone())
    };
    let alone = Patience::of(wait::CEILING).until_async(alone).await.expect("it is told");
    assert_eq!(alone, places(&cluster.masters()[..1]));

    // The whole shard is gone: its names wait, and the others are examined.
    cluster.kill(0);
    let diagnosis = wait::soon("a diagnosis", locks.diagnose()).await;
    let finding = the_one(&diagnosis, Topic::Reach);
    tells(finding, Severity::Danger, "", &["cannot connect to Redis"]);
    assert_eq!(finding.servers, places(&cluster.masters()[..1]));
    let reached = diagnosis.servers().iter().filter(|one| one.version.is_some());
    assert_eq!(reached.count(), 2, "{diagnosis}");
    let down = || async {
        let diagnosis = locks.diagnose().await;
        let found = about(&diagnosis, Topic::Cluster);
        found.iter().any(|one| one.what.contains("a master that is down")).then_some(())
    };
    Patience::of(wait::CEILING).until_async(down).await.expect("the others say that it is down");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_without_an_owner_and_a_master_that_hangs() {
    let cluster = RedisCluster::start();
    let locks = impatient(&cluster.url()).await;
    let slot = "0";
    let forgotten = || {
        // Its owner first: the others hear of it again as long as the owner claims it.
        for server in cluster.masters() {
            let _ = server.try_query::<Value>(&["CLUSTER", "DELSLOTS", slot]);
        }
        let is_gone = |server: &RedisServer| {
            server.query::<String>(&["CLUSTER", "INFO"]).contains("cluster_slots_assigned:16383")
        };
        cluster.masters().iter().all(is_gone).then_some(())
    };
    Patience::of(wait::CEILING).until(forgotten).expect("nobody owns the slot");
    let told = || async {
        let diagnosis = locks.diagnose().await;
        let found = about(&diagnosis, Topic::Cluster);
        let missing = found.iter().find(|one| one.what.contains("1 slots have no owner"));
        let refusing = found.iter().find(|one| one.what.contains("serves no keys"));
        let (missing, refusing) = missing.zip(refusing)?;
        tells(missing, Severity::Danger, "", &["redis-cli --cluster fix"]);
        // With cluster-require-full-coverage no node serves any key.
        (refusing.servers.len() == cluster.masters().len()).then_some(())
    };
    Patience::of(wait::CEILING).until_async(told).await.expect("it is told");

    cluster.masters()[2].stop_signal();
    let diagnosis = wait::soon("a diagnosis", locks.diagnose()).await;
    cluster.masters()[2].cont_signal();
    let finding = the_one(&diagnosis, Topic::Reach);
    assert_eq!(finding.servers, places(&cluster.masters()[2..]));
    let reached = diagnosis.servers().iter().filter(|one| one.version.is_some());
    assert_eq!(reached.count(), 2, "{diagnosis}");
}
