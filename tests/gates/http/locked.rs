//! Leases of a lock on a real Redis, and watermarks on another.

use leasehold::{
    LockRuntime, Stamp,
    fencing::{Admitted, RedisGate},
    redis::{RedisConfig, RedisPool},
};
use leasehold_testkit::RedisServer;

use super::{
    client::write,
    server::{Article, Server, layer},
};

fn gate_on(server: &RedisServer) -> RedisGate {
    RedisGate::new(RedisPool::new(&RedisConfig::new(&server.url()).unwrap()).unwrap())
}

/// Takes the lock of the article and gives it back; the stamp outlives the lease.
async fn lease(locks: &LockRuntime) -> Stamp {
    let guard = locks.lock("articles/7").unwrap().acquire().await.unwrap();
    let stamp = guard.stamp();
    guard.release().await.unwrap();
    stamp
}

#[tokio::test]
async fn a_holder_that_is_late_is_refused_also_after_a_restart_of_the_service() {
    let (lock_server, gate_server) = (RedisServer::start(), RedisServer::start());
    let locks = LockRuntime::connect(&lock_server.url()).await.unwrap();
    let (paused, successor) = (lease(&locks).await, lease(&locks).await);
    let article = Article::trusting();
    for round in 0..2 {
        let server = Server::start(&article, layer(gate_on(&gate_server))).await;
        if round == 0 {
            assert_eq!(write(server.address, 7, Some(paused), "9 left").await.status(), 200);
            assert_eq!(write(server.address, 7, Some(successor), "8 left").await.status(), 200);
        }
        assert_eq!(write(server.address, 7, Some(paused), "9 left").await.status(), 412);
    }
    assert_eq!(article.text(), "8 left");
}

#[tokio::test]
async fn an_advance_shuts_out_the_holder_before_the_first_request() {
    let (lock_server, gate_server) = (RedisServer::start(), RedisServer::start());
    let locks = LockRuntime::connect(&lock_server.url()).await.unwrap();
    let (paused, successor) = (lease(&locks).await, lease(&locks).await);
    let (article, layer) = (Article::trusting(), layer(gate_on(&gate_server)));
    let server = Server::start(&article, layer.clone()).await;
    assert_eq!(layer.advance("articles/7", successor).await, Ok(Admitted::First));
    assert_eq!(write(server.address, 7, Some(paused), "9 left").await.status(), 412);
    assert_eq!(write(server.address, 7, Some(successor), "8 left").await.status(), 200);
}

#[tokio::test]
async fn a_gate_that_is_down_is_503_and_nothing_is_written() {
    let (lock_server, gate_server) = (RedisServer::start(), RedisServer::start());
    let locks = LockRuntime::connect(&lock_server.url()).await.unwrap();
    let stamp = lease(&locks).await;
    let (article, gate) = (Article::trusting(), gate_on(&gate_server));
    drop(gate_server);
    let server = Server::start(&article, layer(gate)).await;
    let answer = write(server.address, 7, Some(stamp), "9 left").await;
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.response.headers()["retry-after"], "1");
    assert!(answer.body.contains("nothing was written"), "{}", answer.body);
    assert_eq!(article.text(), "");
}
