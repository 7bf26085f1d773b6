//! A Cluster that announces an address at which nobody can be reached.

use std::time::Duration;

use axum::Router;
use leasehold::{LockRuntime, error::StoreErrorKind};
use leasehold_testkit::{RedisServer, server::RedisServerBuilder};
use tokio::net::TcpListener;

use crate::{
    connect::{names, refusal},
    support::{patient, wait},
};

/// A machine that has this address, too, but nothing listens there.
const ELSEWHERE: &str = "127.0.0.9";

/// A node that owns every slot.
async fn node(builder: RedisServerBuilder) -> RedisServer {
    let server = builder.cluster_node().start();
    let slots: Vec<String> = (0..16_384).map(|slot| slot.to_string()).collect();
    let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
    server.command(&words.collect::<Vec<_>>());
    let is_up = || server.query::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
    wait::until("a Cluster", is_up).await;
    server
}

#[tokio::test]
async fn it_is_told_who_announces_it_and_by_which_setting() {
    let server = node(RedisServer::builder().arg("cluster-announce-ip", ELSEWHERE)).await;
    let port = server.port().expect("a port");
    let url = format!("redis+cluster://127.0.0.1:{port}");
    let announced =
        format!("{ELSEWHERE}:{port}/0, which the Cluster announces, as 127.0.0.1:{port} says");
    let says = [&*announced, "`cluster-announce-ip`", "`cluster-announce-hostname`"];
    let (kind, text) = refusal(LockRuntime::builder(), &url).await;
    assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
    names(&text, &says);
    let builder = LockRuntime::builder().outage_patience(Duration::from_millis(500));
    let locks = builder.connect_lazy(&*url).expect("good settings");
    let acquired = locks.lock("a").expect("a name").acquire().await;
    names(&acquired.expect_err("out of reach").to_string(), &says);
    let who = format!("which the Cluster announces, as 127.0.0.1:{port} says");
    names(&locks.diagnose().await.to_string(), &[&who, says[1], says[2]]);
    // An address that the user wrote is not told as one that the Cluster announces.
    let (_, text) = refusal(LockRuntime::builder(), &format!("{url},{ELSEWHERE}:{port}")).await;
    assert!(!text.contains("announces"), "{text}");
}

#[tokio::test]
async fn another_server_at_an_announced_port_is_told_as_such() {
    let server = node(RedisServer::builder()).await;
    let port = server.port().expect("a port");
    let url = format!("redis+cluster://127.0.0.1:{port}");
    let plain = RedisServer::builder().tcp().start();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let of_http = listener.local_addr().expect("an address").port();
    let serving = tokio::spawn(axum::serve(listener, Router::new()).into_future());
    for (other, says) in [
        (plain.port().expect("a port"), "not a node of a Cluster"),
        (of_http, "does not speak Redis' protocol"),
    ] {
        // Redis 6.2 reads it when it starts.
        server.set_for_restart("cluster-announce-port", &other.to_string());
        server.restart();
        let told = || {
            server.query::<String>(&["CLUSTER", "NODES"]).contains(&format!(":{other}@"))
                && server.query::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
        };
        wait::until("the port is announced", told).await;
        let who =
            format!("127.0.0.1:{other}/0, which the Cluster announces, as 127.0.0.1:{port} says");
        let (kind, text) = refusal(patient::builder(), &url).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        names(&text, &[says, &who, "`cluster-announce-port`"]);
        // An address that the user wrote is not told as one that the Cluster announces.
        let (_, text) = refusal(patient::builder(), &format!("{url},127.0.0.1:{other}")).await;
        assert!(!text.contains("announces"), "{text}");
    }
    serving.abort();
}
