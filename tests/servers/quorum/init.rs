//! A new quorum whose nodes count at once, because somebody states that nobody has used them.

use std::time::Duration;

use leasehold::{
    LockRuntime,
    error::{ConnectError, StoreErrorKind},
    redis::QuorumSettings,
};
use leasehold_testkit::QuorumGroup;
use tokio::task::block_in_place;

use crate::{
    connect::{names, use_lock},
    support::{patient, wait},
};

/// Why the quorum does not begin: the kind of the error, and its text.
async fn refused(url: &str) -> (StoreErrorKind, String) {
    match patient::builder().init_quorum(url).await {
        Err(ConnectError::Store(error)) => (error.kind(), error.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Every key of a server.
fn keys(group: &QuorumGroup, number: usize) -> Vec<String> {
    block_in_place(|| group.server(number).query(&["KEYS", "*"]))
}

fn place(group: &QuorumGroup, number: usize) -> String {
    format!("127.0.0.1:{}", group.server(number).port().expect("a server has a port"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_a_new_quorum_count_at_once() {
    for nodes in [3, 5] {
        let group = QuorumGroup::start(nodes);
        // Otherwise no node would count before the test is over.
        let quorum = QuorumSettings::default().longest_ttl(Duration::from_secs(3600));
        let builder = patient::builder().quorum(quorum.expect("in its range"));
        builder.clone().init_quorum(group.url()).await.expect("all are new");
        let locks = builder.connect(group.url()).await.expect("they count");
        let lock = locks.lock("orders/42").expect("a name");
        let guard = lock.acquire().wait(wait::CEILING).await.expect("a lease");
        guard.release().await.expect("held to the end");
        for number in 0..nodes {
            let mark: String =
                block_in_place(|| group.server(number).query(&["GET", "leasehold:boot"]));
            assert!(mark.contains(" 3600000 "), "{mark}");
        }
        // Nobody has to know that it was done: it is refused, and changes nothing.
        let (kind, text) = refused(&group.url()).await;
        assert_eq!(kind, StoreErrorKind::Config);
        names(&text, &["boot mark", "nothing was changed", "127.0.0.1:"]);
        use_lock(&locks).await;
    }
}

/// After a restart without its data, a node that was let in stays out as any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_loses_its_data_stays_out() {
    let group = QuorumGroup::start(3);
    patient::builder().init_quorum(group.url()).await.expect("all are new");
    block_in_place(|| {
        group.kill(1);
        group.revive_empty(0);
    });
    let locks = patient::builder().connect(group.url()).await.expect("two answer");
    let lock = locks.lock("orders/42").expect("a name");
    let tried = lock.acquire().wait(Duration::from_secs(1)).await;
    assert!(tried.is_err(), "one of three counts: {tried:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_away_stands_in_the_way() {
    let group = QuorumGroup::start(3);
    block_in_place(|| group.kill(1));
    let (kind, text) = refused(&group.url()).await;
    assert_eq!(kind, StoreErrorKind::Definite, "{text}");
    names(&text, &[&place(&group, 1)]);
    assert!(keys(&group, 0).is_empty() && keys(&group, 2).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_used_stands_in_the_way() {
    let group = QuorumGroup::start(3);
    let lease = "leasehold:{orders/42}:lease";
    for (key, what) in [("leasehold:boot", "boot mark"), (lease, lease)] {
        block_in_place(|| group.server(2).command(&["SET", key, "1000000000000 100 run"]));
        let (kind, text) = refused(&group.url()).await;
        assert_eq!(kind, StoreErrorKind::Config, "{text}");
        names(&text, &[&place(&group, 2), what, "nothing was changed"]);
        assert!(keys(&group, 0).is_empty() && keys(&group, 1).is_empty());
        block_in_place(|| group.server(2).command(&["DEL", key]));
    }
    // A client that only connects marks its nodes.
    let locks = patient::builder().connect(group.url()).await.expect("they answer");
    let (_, text) = refused(&group.url()).await;
    names(&text, &["boot mark"]);
    drop(locks);
    // What belongs to others is no sign of a client.
    let other = LockRuntime::builder().namespace("leasehold2");
    other.init_quorum(group.url()).await.expect("nothing of this namespace is there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_addresses_are_refused() {
    let group = QuorumGroup::start(3);
    let (kind, text) = refused(&group.server(0).url()).await;
    assert_eq!(kind, StoreErrorKind::Config);
    names(&text, &["not that of a quorum", "redis+quorum://"]);
}
