use std::{os::unix::net::UnixStream, time::Duration};

use leasehold::{
    Released,
    error::{ConnectError, StoreErrorKind},
};
use leasehold_testkit::{Patience, RedisServer};

use super::{refusal, scene};
use crate::support::{matrix::row, patient, wait};

row! {
    max_clients: protected;
    fault: "other clients use all connections that the server allows (maxclients)",
    right: "a clear error for new connections; held leases go on; works when the others are gone",
}

const TTL: Duration = Duration::from_secs(4);
const CLIENTS: usize = 12;
/// How often somebody connects in vain.
const TRIES: usize = 20;

fn protected() -> String {
    scene::run(async {
        let server = RedisServer::builder().arg("maxclients", CLIENTS.to_string()).start();
        let locks = scene::connect(&server.url(), TTL).await;
        let held = scene::take(&locks, "held").await;
        // From then on it has the connection for its renewals.
        scene::renewed(&held).await;

        let crowd = || UnixStream::connect(server.socket()).expect("the socket takes connections");
        let crowd: Vec<_> = (0..2 * CLIENTS).map(|_| crowd()).collect();
        for _ in 0..TRIES {
            refused(&server.url()).await;
        }
        scene::renewed(&held).await;
        assert!(held.is_held());
        drop(crowd);

        let connected = || async { patient::builder().connect(&server.url()).await.ok() };
        let another = Patience::of(wait::CEILING).until_async(connected).await;
        let another = another.expect("the crowd has gone");
        assert_eq!(held.release().await.expect("held to the end"), Released::Ended);
        let again = scene::take(&another, "held").await;
        assert_eq!(again.release().await.expect("held to the end"), Released::Ended);
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("{TRIES} clear errors; the held lease was renewed; works without the crowd")
    })
}

/// What a runtime is told that connects. The server closes the connection behind its words, which
/// may be lost on the way.
async fn refused(url: &str) {
    let connecting = patient::builder().connect(url).await;
    let error = connecting.expect_err("all connections are taken");
    let ConnectError::Store(store) = &error else { panic!("{error:?}") };
    assert_eq!(store.kind(), StoreErrorKind::Definite, "{error}");
    let said = error.to_string();
    refusal::assert_says(&said, &["(at ", "maxclients"]);
    let told = said.contains("max number of clients");
    assert!(told || said.contains("cannot connect"), "{said}");
}
