//! On a node of a Cluster, commands of one moment share a call that declares no keys.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Clock, Entropy, Fence, LockName, LockStore, StoreError, StoreErrorKind,
    SystemClock, SystemEntropy,
    store::{AcquireAnswer, ReleaseAnswer},
};
use leasehold_redis::{ClusterStore, RedisConfig};
use leasehold_testkit::{
    RedisCluster, Reply, ScriptedPeer,
    contract::{Calls, alice, bob, ttl},
};
use tokio::runtime::Handle;

use super::support::{PATIENCE, config};

/// How many commands are on their way at once.
const CROWD: u64 = 65;

async fn connect(config: &RedisConfig) -> Calls {
    let id = SystemEntropy.runtime_id();
    let store = ClusterStore::connect(config, Arc::new(SystemClock), Handle::current(), id).await;
    let store = Arc::new(store.expect("a Cluster that lets everybody in"));
    let name = LockName::new("first").expect("a name");
    Calls::new(store as Arc<dyn LockStore>, &name, SystemClock.now() + PATIENCE)
}

/// On one connection for each node.
async fn on(cluster: &RedisCluster) -> Calls {
    connect(&config(&cluster.url()).connections(1)).await
}

async fn try_each(
    calls: &Calls,
    id: fn(u64) -> AcquisitionId,
) -> Vec<Result<AcquireAnswer, StoreError>> {
    let tries = (0..CROWD).map(|number| {
        let calls = calls.about(&format!("batch/{number}"));
        tokio::spawn(async move { calls.acquire(id(number), ttl(60), None).await })
    });
    let mut answers = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        answers.push(one.await.expect("no panic"));
    }
    answers
}

async fn release_each(
    calls: &Calls,
    id: fn(u64) -> AcquisitionId,
    fences: &BTreeMap<u64, Fence>,
) -> Vec<Result<ReleaseAnswer, StoreError>> {
    let releases = fences.iter().map(|(&number, &fence)| {
        let calls = calls.about(&format!("batch/{number}"));
        tokio::spawn(async move { calls.release(id(number), fence, None).await })
    });
    let mut answers = Vec::new();
    for one in releases.collect::<Vec<_>>() {
        answers.push(one.await.expect("no panic"));
    }
    answers
}

fn fences(answers: &[Result<AcquireAnswer, StoreError>]) -> BTreeMap<u64, Fence> {
    let fence = |(number, answer): (u64, &Result<AcquireAnswer, StoreError>)| match answer {
        Ok(AcquireAnswer::Granted(granted)) => (number, granted.first),
        other => panic!("{number}: expected a grant and got {other:?}"),
    };
    (0..).zip(answers).map(fence).collect()
}

/// Returns when names that were not served may share calls again, and all else.
async fn calm(calls: &Calls) {
    SystemClock.sleep_until(SystemClock.now() + Duration::from_secs(1)).await;
    calls.inspect().await.expect("an answer");
}

#[tokio::test]
async fn what_waits_for_a_node_travels_as_one_call() {
    let cluster = RedisCluster::of_masters(1);
    let (calls, node) = (on(&cluster).await, &cluster.masters()[0]);
    // The first grants make the counters: that needs more than the fast path.
    let first = fences(&try_each(&calls, alice).await);
    release_each(&calls, alice, &first).await.into_iter().for_each(|answer| {
        assert_eq!(answer, Ok(ReleaseAnswer::Released));
    });
    calm(&calls).await;
    node.command(&["CONFIG", "RESETSTAT"]);
    let second = fences(&try_each(&calls, bob).await);
    let to_acquire = node.calls("evalsha");
    let released = release_each(&calls, bob, &second).await;
    let to_release = node.calls("evalsha") - to_acquire;
    assert!(released.iter().all(|answer| *answer == Ok(ReleaseAnswer::Released)), "{released:?}");
    assert!(second.iter().all(|(number, fence)| *fence > first[number]));
    // One alone, and the 64 others; a few more if the server is slow.
    for sent in [to_acquire, to_release] {
        assert!((2..=8).contains(&sent), "{sent} calls for {CROWD} commands");
    }
}

/// Every name is held: a shared call serves none of the tries, and soon no such call is made.
#[tokio::test]
async fn what_a_shared_call_does_not_serve_is_sent_alone() {
    let cluster = RedisCluster::of_masters(1);
    let (calls, node) = (on(&cluster).await, &cluster.masters()[0]);
    fences(&try_each(&calls, alice).await);
    calm(&calls).await;
    node.command(&["CONFIG", "RESETSTAT"]);
    for _ in 0..4 {
        for answer in try_each(&calls, bob).await {
            assert!(matches!(answer, Ok(AcquireAnswer::Busy { .. })), "{answer:?}");
        }
    }
    let sent = node.calls("evalsha");
    assert!((4 * CROWD..4 * CROWD + 40).contains(&sent), "{sent} calls for {} tries", 4 * CROWD);
}

/// The user may touch no key of some names: their tries tell so, and spoil no other.
#[tokio::test]
async fn a_missing_right_to_one_key_spoils_no_other_answer_of_a_node() {
    let cluster = RedisCluster::of_masters(1);
    let admin = on(&cluster).await;
    let first = fences(&try_each(&admin, alice).await);
    release_each(&admin, alice, &first).await;
    let rights = ["~leasehold:{preflight:*", "~leasehold:{batch/1*", "&leasehold:*", "+@all"];
    let node = &cluster.masters()[0];
    node.command(&[&["ACL", "SETUSER", "app", "reset", "on", ">sesame"][..], &rights].concat());
    let calls = connect(&config(&cluster.url_with("app:sesame@")).connections(1)).await;
    for (number, answer) in try_each(&calls, bob).await.iter().enumerate() {
        let is_allowed = number == 1 || (10..20).contains(&number);
        assert_eq!(answer.is_ok(), is_allowed, "{number}: {answer:?}");
    }
}

/// A peer that is the only node of a Cluster, and answers calls without keys as told.
async fn node_of_its_own(
    without_keys: impl Fn(&[String]) -> Reply + Send + Sync + 'static,
) -> ScriptedPeer {
    let port = Arc::new(AtomicU16::new(0));
    let own = Arc::clone(&port);
    let peer = ScriptedPeer::start(move |command: &[String]| {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        match words[..] {
            ["HELLO", ..] => as_node(Reply::hello("7.2.0", 2)),
            ["CLIENT", ..] => Reply::ok(),
            ["CLUSTER", "INFO"] => Reply::bulk("cluster_state:ok\r\ncluster_current_epoch:1\r\n"),
            ["CLUSTER", "SLOTS"] => {
                let port = Reply::Integer(own.load(Ordering::SeqCst).into());
                let node = Reply::Array(vec![Reply::bulk("127.0.0.1"), port, Reply::bulk("id")]);
                let slots = vec![Reply::Integer(0), Reply::Integer(16_383), node];
                Reply::Array(vec![Reply::Array(slots)])
            }
            ["EVALSHA" | "EVAL", _, "0", ..] => without_keys(command),
            [.., "release", _, _] => Reply::Array(vec![Reply::Integer(1)]),
            [.., "try", _, _] => {
                let busy = [Reply::bulk("busy"), Reply::Integer(1000), Reply::Integer(0)];
                Reply::Array(vec![Reply::Array(busy.into())])
            }
            _ => Reply::bulk("ok"),
        }
    });
    let peer = peer.await.expect("a peer");
    port.store(peer.port(), Ordering::SeqCst);
    peer
}

/// The greeting of a node.
fn as_node(hello: Reply) -> Reply {
    match hello {
        Reply::Array(parts) => Reply::Array(parts.into_iter().map(as_node).collect()),
        Reply::Map(parts) => {
            Reply::Map(parts.into_iter().map(|(key, value)| (key, as_node(value))).collect())
        }
        Reply::Bulk(text) if text == "standalone" => Reply::bulk("cluster"),
        other => other,
    }
}

async fn on_peer(peer: &ScriptedPeer) -> Calls {
    let url = format!("redis+cluster://127.0.0.1:{}", peer.port());
    connect(&config(&url).connections(1)).await
}

fn calls_without_keys(peer: &ScriptedPeer) -> usize {
    let commands = peer.commands();
    commands.iter().filter(|words| words.get(2).is_some_and(|keys| keys == "0")).count()
}

#[tokio::test]
async fn a_server_that_refuses_undeclared_keys_is_asked_once() {
    let peer = node_of_its_own(|_| Reply::error("ERR all keys must be declared")).await;
    let calls = on_peer(&peer).await;
    for answer in try_each(&calls, alice).await {
        assert!(matches!(answer, Ok(AcquireAnswer::Busy { .. })), "{answer:?}");
    }
    assert_eq!(calls_without_keys(&peer), 1, "that of the check");
}

/// The connection ends before the answer to a shared call.
#[tokio::test]
async fn of_a_shared_call_only_what_may_be_repeated_is_sent_again() {
    let is_check = |words: &[String]| words[5] == "1";
    let not_served = || Reply::Array(vec![Reply::Integer(0)]);
    let peer =
        node_of_its_own(move |words| if is_check(words) { not_served() } else { Reply::Close })
            .await;
    let calls = on_peer(&peer).await;
    let fence = Fence::try_from(1_u64).expect("a token");
    let names = ["a", "b", "c", "d", "e"].map(|name| calls.about(name));
    let (alone, one, ended, other, also_ended) = tokio::join!(
        names[0].acquire(alice(10), ttl(60), None),
        names[1].acquire(alice(11), ttl(60), None),
        names[2].release(alice(12), fence, None),
        names[3].acquire(alice(13), ttl(60), None),
        names[4].release(alice(14), fence, None),
    );
    for acquired in [alone, one, other] {
        assert!(matches!(acquired, Ok(AcquireAnswer::Busy { .. })), "{acquired:?}");
    }
    for released in [ended, also_ended] {
        let error = released.expect_err("cut");
        assert_eq!(error.kind(), StoreErrorKind::Indeterminate);
    }
    assert_eq!(calls_without_keys(&peer), 2, "that of the check, and one more");
}
