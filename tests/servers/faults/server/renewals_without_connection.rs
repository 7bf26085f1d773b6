use std::time::Duration;

use leasehold::Released;
use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{
    matrix::row,
    naive::{NaiveHeld, NaiveLock},
    raw, wait,
};

row! {
    renewals_without_connection: protected, control;
    fault: "the server takes no more clients (maxclients) when a process takes its first lock",
    right: "the lease is renewed on the connection of its acquire, and held on",
    control: "renewals that have only a connection of their own",
}

const TTL: Duration = Duration::from_secs(2);

/// Lets nobody else connect.
async fn close(connection: &mut redis::aio::MultiplexedConnection) {
    let mut close = redis::cmd("CONFIG");
    let close = close.arg("SET").arg("maxclients").arg(1);
    close.exec_async(connection).await.expect("the server takes the setting");
}

fn protected() -> String {
    let server = RedisServer::start();
    scene::run(async {
        let mut admin = raw::connect(&server.url()).await;
        let locks = scene::connect(&server.url(), TTL).await;
        close(&mut admin).await;
        let held = scene::take(&locks, "held").await;
        for _ in 0..3 {
            scene::renewed(&held).await;
        }
        assert!(held.is_held(), "{:?}", held.lease().state());
        assert_eq!(held.release().await.expect("held to the end"), Released::Ended);
        "renewed 3 times".into()
    })
}

fn control() -> String {
    const TTL: Duration = Duration::from_millis(500);
    let server = RedisServer::start();
    scene::run(async {
        let mut admin = raw::connect(&server.url()).await;
        let mut lock = NaiveLock::new(raw::connect(&server.url()).await, "a", TTL);
        let mut other = NaiveLock::new(raw::connect(&server.url()).await, "a", TTL);
        close(&mut admin).await;
        let held = lock.try_acquire().await.expect("an answer").expect("a free lock");
        let renewals = redis::Client::open(server.url()).expect("an address");
        let taken: NaiveHeld = wait::soon("the other has it", async {
            loop {
                let refused = renewals.get_multiplexed_async_connection().await;
                assert!(refused.is_err(), "the server takes no more clients");
                match other.try_acquire().await.expect("an answer") {
                    Some(taken) => return taken,
                    None => wait::a_moment().await,
                }
            }
        })
        .await;
        assert!(taken.fence > held.fence);
        "another has the lock of a holder that could not renew, and could release".into()
    })
}
