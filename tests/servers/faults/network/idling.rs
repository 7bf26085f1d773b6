use std::sync::Arc;

use leasehold::LockRuntime;
use leasehold_testkit::RedisServer;

use super::net::Net;
use crate::support::{naive::NaiveLock, patient, raw, wait};

/// How many instances of a service have the same schedule.
const INSTANCES: usize = 3;

/// How often their job is due, after the first time.
pub(super) const TICKS: usize = 3;

/// A server that closes the connections of clients which say nothing for a second.
pub(super) fn server() -> Net {
    Net::before(RedisServer::builder().arg("timeout", "1").start())
}

/// Waits until the server has closed every connection that nobody used, subscriptions aside.
pub(super) async fn until_cut(net: &Net) {
    wait::until("idle connections are cut", || {
        let clients: String = net.server.query(&["CLIENT", "LIST", "TYPE", "normal"]);
        // That of the question is one.
        clients.lines().count() == 1
    })
    .await;
    wait::a_moment().await;
}

/// Instances of a service, each with connections of its own.
pub(super) async fn instances(net: &Net) -> Vec<Arc<LockRuntime>> {
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        let locks = patient::builder().connect(&net.url()).await.expect("the server answers");
        instances.push(Arc::new(locks));
    }
    instances
}

/// What many write by hand: each instance keeps its connection, and makes a new one when a command
/// has failed. At every tick it tries once.
pub(super) async fn nobody_runs(net: &Net) -> String {
    let mut instances = Vec::new();
    for _ in 0..INSTANCES {
        instances.push(raw::connect(&net.url()).await);
    }
    let mut idle_ticks = 0;
    for tick in 0..TICKS {
        until_cut(net).await;
        let mut ran = 0;
        for connection in &mut instances {
            let mut lock =
                NaiveLock::new(connection.clone(), &format!("job/{tick}"), wait::CEILING);
            match lock.try_acquire().await {
                Ok(held) => ran += usize::from(held.is_some()),
                Err(_) => *connection = raw::connect(&net.url()).await,
            }
        }
        idle_ticks += usize::from(ran == 0);
    }
    assert!(idle_ticks > 0, "the control came to no harm");
    format!("{idle_ticks} of {TICKS} times nobody ran it")
}
