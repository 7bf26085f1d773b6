use std::time::Duration;

use leasehold::{
    LockRuntime,
    error::{AcquireError, ConnectError, StoreErrorKind},
    redis::Replication,
};
use leasehold_testkit::{RedisServer, server::ReplicatedPair};

use super::{asking, assert_unacknowledged, one};

fn on_disk() -> Replication {
    Replication::wait_aof(1, Duration::from_secs(10)).unwrap()
}

fn refused(outcome: Result<LockRuntime, ConnectError>) -> String {
    match outcome {
        Err(ConnectError::Store(error)) => {
            assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
            error.to_string()
        }
        other => panic!("it cannot wait, and yet {other:?}"),
    }
}

#[tokio::test]
async fn a_server_without_an_append_only_file_refuses_disks_at_connect() {
    let server = RedisServer::start();
    let said = refused(asking(on_disk()).connect(server.url()).await);
    let remedy = if server.version().has_waitaof() { "appendonly yes" } else { "Redis 7.2" };
    assert!(said.contains(remedy), "{said}");
}

#[tokio::test]
async fn disks_of_master_and_replica_acknowledge() {
    let pair = ReplicatedPair::start_with(&[("appendonly", "yes")]);
    if !pair.master.version().has_waitaof() {
        return drop(refused(asking(on_disk()).connect(pair.master.url()).await));
    }
    let locks = asking(on_disk()).connect(pair.master.url()).await.expect("both have a disk");
    let guard = locks.lock("a").unwrap().acquire().await.expect("both disks have it");
    guard.release().await.expect("it is held");
    pair.replica.stop_signal();
    let lock = locks.lock("b").unwrap();
    let soon = Replication::wait_aof(1, Duration::from_millis(300)).unwrap();
    assert_unacknowledged(lock.acquire().replication(soon).try_acquire().await);
    pair.replica.cont_signal();
}

#[tokio::test]
async fn a_missing_right_to_wait_shows_at_connect() {
    let server = RedisServer::start();
    let rights = ["on", "nopass", "~*", "&*", "+@all", "-wait"];
    server.command(&[&["ACL", "SETUSER", "locks"][..], &rights].concat());
    let url = server.url_with("locks", "any", 0);
    let said = refused(asking(one()).connect(&*url).await);
    assert!(said.contains("wait"), "{said}");
    // Who asks for no replica needs no such right, unless one call does.
    let locks = asking(Replication::NONE).connect(&*url).await.expect("no right is missing");
    let lock = locks.lock("a").unwrap();
    match lock.acquire().replication(one()).await {
        Err(AcquireError::Store(error)) => assert_eq!(error.kind(), StoreErrorKind::Config),
        other => panic!("it may not wait, and yet {other:?}"),
    }
    let guard = lock.acquire().await.expect("it was taken back");
    guard.release().await.expect("it is held");
}

#[test]
fn what_is_out_of_range_is_refused() {
    let timeout = Duration::from_secs(1);
    for wrong in [
        Replication::wait(0, timeout),
        Replication::wait(32, timeout),
        Replication::wait(1, Duration::ZERO),
        Replication::wait_aof(1, Duration::from_secs(11)),
    ] {
        let error = wrong.unwrap_err();
        assert!(
            ["number of replicas", "replication timeout"].contains(&error.setting()),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_embedded_runtime_has_no_replicas() {
    let outcome = LockRuntime::builder().replication(one()).embedded();
    assert!(matches!(outcome, Err(ConnectError::NoReplicas)), "{outcome:?}");
    let lock = LockRuntime::embedded().unwrap().lock("a").unwrap();
    assert_unacknowledged(lock.acquire().replication(one()).wait(Duration::from_millis(300)).await);
    lock.acquire().await.expect("nothing was left").release().await.expect("it is held");
}
