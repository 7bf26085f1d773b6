//! Gates on a pool of connections that the service has already.
#![cfg(feature = "deadpool")]

use leasehold::{
    LockRuntime,
    error::StoreErrorKind,
    fencing::{FenceGate, GateError, RedisGate},
    redis::deadpool_redis::{Config, Runtime},
};
use leasehold_testkit::RedisServer;

use super::names;
use crate::support::patient;

#[tokio::test]
async fn a_gate_writes_through_a_pool_of_the_service() {
    let server = RedisServer::builder().tcp().start();
    let pool = Config::from_url(server.url()).create_pool(Some(Runtime::Tokio1)).expect("a pool");
    let gate = RedisGate::new(pool.clone());
    let locks = patient::builder().connect(&server.url()).await.expect("a server");
    let lock = locks.lock("a").expect("a name");
    let old = lock.acquire().await.expect("a lease");
    let stale = old.stamp();
    old.release().await.expect("held to the end");
    let guard = lock.acquire().await.expect("a lease");
    gate.set("orders:{42}", "paid", guard.stamp()).await.expect("the newest fence");
    let refused = gate.admit("orders:{42}", stale).await.expect_err("an old fence");
    assert!(matches!(refused, GateError::Stale(_)), "{refused}");
    assert_eq!(server.query::<String>(&["GET", "orders:{42}"]), "paid");
    // The service's own connections: one was made, and it came back.
    assert_eq!((pool.status().size, pool.status().available), (1, 1));
    server.kill();
    let error = gate.admit("orders:{42}", guard.stamp()).await.expect_err("nobody is there");
    let GateError::Store(error) = error else { panic!("{error}") };
    names(&error.to_string(), &["deadpool_redis", "orders:{42}"]);
    assert!(error.kind().is_transient(), "{error}");
    let nobody = LockRuntime::connect(&server.url()).await.expect_err("nobody is there");
    assert!(nobody.to_string().contains("check that the server runs"), "{nobody}");
    assert_ne!(error.kind(), StoreErrorKind::Corrupt);
}
