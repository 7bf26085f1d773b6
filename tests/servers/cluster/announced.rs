//! A Cluster that announces an address at which nobody can be reached.

use std::time::Duration;

use leasehold::{LockRuntime, error::StoreErrorKind};
use leasehold_testkit::RedisServer;

use crate::{
    connect::{names, refusal},
    support::wait,
};

/// A machine that has this address, too, but nothing listens there.
const ELSEWHERE: &str = "127.0.0.9";

#[tokio::test]
async fn it_is_told_who_announces_it_and_by_which_setting() {
    let server =
        RedisServer::builder().cluster_node().arg("cluster-announce-ip", ELSEWHERE).start();
    let slots: Vec<String> = (0..16_384).map(|slot| slot.to_string()).collect();
    let words = ["CLUSTER", "ADDSLOTS"].into_iter().chain(slots.iter().map(String::as_str));
    server.command(&words.collect::<Vec<_>>());
    let is_up = || server.query::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
    wait::until("a Cluster", is_up).await;
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
    // An address that the user wrote is not told as one that the Cluster announces.
    let (_, text) = refusal(LockRuntime::builder(), &format!("{url},{ELSEWHERE}:{port}")).await;
    assert!(!text.contains("announces"), "{text}");
}
