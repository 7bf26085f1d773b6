use std::time::Duration;

use leasehold::{
    LockRuntime,
    error::{AcquireError, ConnectError, OptionsError, StoreErrorKind},
    redis::Replication,
};
use leasehold_testkit::{RedisServer, server::ReplicatedPair};

use super::{ONE, asking, assert_unacknowledged};

const ON_DISK: Replication = Replication::WaitAof { replicas: 1, timeout: Duration::from_secs(10) };

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
    let said = refused(asking(ON_DISK).connect(server.url()).await);
    let remedy = if server.version().has_waitaof() { "appendonly yes" } else { "Redis 7.2" };
    assert!(said.contains(remedy), "{said}");
}

#[tokio::test]
async fn disks_of_master_and_replica_acknowledge() {
    let pair = ReplicatedPair::start_with(&[("appendonly", "yes")]);
    if !pair.master.version().has_waitaof() {
        return drop(refused(asking(ON_DISK).connect(pair.master.url()).await));
    }
    let locks = asking(ON_DISK).connect(pair.master.url()).await.expect("both have a disk");
    let guard = locks.lock("a").unwrap().acquire().await.expect("both disks have it");
    guard.release().await.expect("it is held");
    pair.replica.stop_signal();
    let lock = locks.lock("b").unwrap();
    let soon = Replication::WaitAof { replicas: 1, timeout: Duration::from_millis(300) };
    assert_unacknowledged(lock.acquire().replication(soon).try_acquire().await);
    pair.replica.cont_signal();
}

#[tokio::test]
async fn a_missing_right_to_wait_shows_at_connect() {
    let server = RedisServer::start();
    let rights = ["on", "nopass", "~*", "&*", "+@all", "-wait"];
    server.command(&[&["ACL", "SETUSER", "locks"][..], &rights].concat());
    let url = server.url_with("locks", "any", 0);
    let said = refused(asking(ONE).connect(&*url).await);
    assert!(said.contains("wait"), "{said}");
    // Who asks for no replica needs no such right, unless one call does.
    let locks = asking(Replication::None).connect(&*url).await.expect("no right is missing");
    let lock = locks.lock("a").unwrap();
    match lock.acquire().replication(ONE).await {
        Err(AcquireError::Store(error)) => assert_eq!(error.kind(), StoreErrorKind::Config),
        other => panic!("it may not wait, and yet {other:?}"),
    }
    let guard = lock.acquire().await.expect("it was taken back");
    guard.release().await.expect("it is held");
}

#[tokio::test]
async fn what_is_out_of_range_is_refused() {
    let timeout = Duration::from_secs(1);
    for wrong in [
        Replication::Wait { replicas: 0, timeout },
        Replication::Wait { replicas: 32, timeout },
        Replication::Wait { replicas: 1, timeout: Duration::ZERO },
        Replication::WaitAof { replicas: 1, timeout: Duration::from_secs(11) },
    ] {
        let outcome = LockRuntime::builder().replication(wrong).connect("redis://127.0.0.1:1");
        assert!(matches!(outcome.await, Err(ConnectError::Setting(_))), "{wrong:?}");
        let lock = LockRuntime::embedded().unwrap().lock("a").unwrap();
        match lock.acquire().replication(wrong).await {
            Err(AcquireError::Options { option: OptionsError::Replication(_), .. }) => {}
            other => panic!("{wrong:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_embedded_runtime_has_no_replicas() {
    let outcome = LockRuntime::builder().replication(ONE).embedded();
    assert!(matches!(outcome, Err(ConnectError::NoReplicas)), "{outcome:?}");
    let lock = LockRuntime::embedded().unwrap().lock("a").unwrap();
    assert_unacknowledged(lock.acquire().replication(ONE).wait(Duration::from_millis(300)).await);
    lock.acquire().await.expect("nothing was left").release().await.expect("it is held");
}
