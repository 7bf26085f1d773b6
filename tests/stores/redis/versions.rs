//! Servers that cannot be used: too old, played by a peer, for they cannot be had here; or nodes
//! of a Cluster; or closed to strangers.

use leasehold_core::{StoreError, StoreErrorKind::Config};
use leasehold_testkit::{RedisServer, Reply, ScriptedPeer, contract::alice};

use super::support::{assert_says, calls, connect, granted};

async fn connecting_to(hello: Reply) -> Result<Vec<Vec<String>>, StoreError> {
    let ran = || Reply::bulk("ok");
    let table = [
        ("HELLO", hello),
        ("CLIENT", Reply::ok()),
        ("EVAL", ran()),
        ("EVALSHA", ran()),
        ("SUBSCRIBE", ran()),
    ];
    let peer = ScriptedPeer::of_table(table).await.expect("a peer");
    connect(&peer.url()).await.map(|_| peer.commands())
}

async fn is_too_old(hello: Reply, what: &str) {
    let error = connecting_to(hello).await.expect_err(what);
    assert_says(&error, Config, what, "Redis 6.2 or newer");
    assert!(error.to_string().contains("redis://127.0.0.1:"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_know_hello_is_too_old_or_a_proxy() {
    is_too_old(
        Reply::error("ERR unknown command `HELLO`, with args beginning with: "),
        "refuses HELLO, which begins each connection: unknown command `HELLO`",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_wants_arguments_for_hello_is_too_old() {
    is_too_old(Reply::error("ERR wrong number of arguments for 'hello' command"), "older than 6.2")
        .await;
}

#[tokio::test]
async fn a_server_that_tells_an_old_version_is_too_old() {
    is_too_old(Reply::hello("6.0.16", 2), "6.0.16").await;
    is_too_old(Reply::hello("6.0.16", 3), "6.0.16").await;
    is_too_old(Reply::hello("5.9", 2), "5.9").await;
}

#[tokio::test]
async fn the_oldest_and_newer_servers_are_taken() {
    for version in ["6.2.0", "6.10.0", "7.0.15", "8.8.1", "10.0.0", "255.255.255"] {
        let commands = connecting_to(Reply::hello(version, 2)).await.expect(version);
        assert!(commands.iter().any(|command| command[0] == "EVALSHA"), "{commands:?}");
    }
}

#[tokio::test]
async fn a_server_that_tells_no_version_is_refused() {
    let error = connecting_to(Reply::Array(Vec::new())).await.expect_err("no version");
    assert_says(&error, Config, "does not tell its version", "6.2 or newer");
}

#[tokio::test]
async fn a_node_of_a_cluster_is_refused_before_anything_is_sent() {
    let what = "a node of a Redis Cluster";
    for protocol in [2, 3] {
        let hello = Reply::hello("7.0.15", protocol).in_mode("cluster");
        let error = connecting_to(hello).await.expect_err(what);
        assert_says(&error, Config, what, "redis+cluster://host");
    }
    let server = RedisServer::builder().tcp().arg("cluster-enabled", "yes").start();
    for protocol in ["resp2", "resp3"] {
        let url = format!("{}/?protocol={protocol}", server.url());
        let error = connect(&url).await.expect_err(what);
        assert_says(&error, Config, what, "redis+cluster://host");
        assert!(error.to_string().contains("redis://127.0.0.1:"), "{error}");
    }
    let stats: String = server.query(&["INFO", "commandstats"]);
    assert!(!stats.contains("cmdstat_eval"), "{stats}");
}

#[tokio::test]
async fn a_server_in_protected_mode_says_what_to_set() {
    let denied = Reply::error(
        "DENIED Redis is running in protected mode because protected mode is enabled and no \
         password is set for the default user.",
    );
    let error = connecting_to(denied).await.expect_err("protected");
    assert_says(&error, Config, "protected mode", "set a password");
}

#[tokio::test]
async fn both_protocols_are_spoken() {
    let server = RedisServer::builder().tcp().start();
    for protocol in ["resp2", "resp3"] {
        server.flush_all();
        let url = format!("{}/?protocol={protocol}", server.url());
        let store = connect(&url).await.expect(protocol);
        let calls = calls(&store);
        let fence = granted(&calls, alice(1)).await;
        calls.inspect().await.expect("inspect");
        calls.release(alice(1), fence, None).await.expect("release");
    }
}
