//! A server that stands still or loses its clients: calls end in time, and go on afterwards.

use std::{collections::BTreeSet, time::Duration};

use leasehold_core::{
    StoreErrorKind::Indeterminate,
    store::{HoldAnswer, ReleaseAnswer, RenewAnswer},
};
use leasehold_testkit::{
    Patience, RedisServer,
    contract::{alice, bob, ttl},
};

use super::support::{
    PATIENCE, assert_says, assert_says_of_lock, calls, calls_within, config, connect_with, granted,
    granted_in_the_end, store_on,
};

const SHORT: Duration = Duration::from_millis(100);

/// The ids of the store's connections; that of the test has no name.
fn connection_ids(server: &RedisServer) -> BTreeSet<String> {
    let clients: String = server.query(&["CLIENT", "LIST"]);
    let ours = clients.lines().filter(|line| line.contains(" name=leasehold "));
    ours.filter_map(|line| line.split(' ').next()).map(Into::into).collect()
}

#[tokio::test]
async fn calls_to_a_stopped_server_end_at_their_deadline_and_later_ones_work() {
    let server = RedisServer::start();
    let config = config(&server.url()).connections(1).connect_timeout(SHORT);
    let store = connect_with(&config).await.expect("the server answers");
    let fence = granted(&calls(&store), alice(1)).await;
    let renewal = calls(&store).renewal(alice(1), fence, ttl(60));
    calls(&store).renew(std::slice::from_ref(&renewal)).await.expect("renew");
    let inspected = calls(&store).inspect().await;
    inspected.expect("inspect");
    let before = connection_ids(&server);
    assert_eq!(before.len(), 2, "one for commands and looks, one for renewals");

    server.stop_signal();
    let late = calls_within(&store, SHORT).hold(alice(1), fence, (2, 1), ttl(60)).await;
    let error = late.expect_err("nobody answers");
    assert_says_of_lock(&error, Indeterminate, "did not answer in time", "check server");
    let late = calls_within(&store, SHORT).renew(std::slice::from_ref(&renewal)).await;
    assert_says(&late.expect_err("nobody answers"), Indeterminate, "in time", "check server");
    let late = calls_within(&store, SHORT).inspect().await;
    let error = late.expect_err("nobody answers");
    assert!(error.kind().is_transient() && error.what().contains("in time"), "{error}");
    // Without a connection nothing was sent.
    let late = calls_within(&store, PATIENCE).release(alice(1), fence, None).await;
    assert!(late.expect_err("nobody answers").kind().is_transient());
    server.cont_signal();

    // The hold that was not answered has run by now, or runs again; it comes to the same.
    let held = || async { calls(&store).hold(alice(1), fence, (2, 1), ttl(60)).await.ok() };
    let held = Patience::of(PATIENCE).until_async(held).await.expect("the server goes on");
    assert!(matches!(held, HoldAnswer::Held { .. }), "{held:?}");
    let answers = calls(&store).renew(&[renewal]).await.expect("renew");
    assert!(matches!(answers[..], [RenewAnswer::Renewed { .. }]), "{answers:?}");
    calls(&store).inspect().await.expect("inspect");
    let after = connection_ids(&server);
    assert!(before.is_disjoint(&after), "{before:?} were used again: {after:?}");
    let released = calls(&store).release(alice(1), fence, None).await.expect("release");
    assert_eq!(released, ReleaseAnswer::Released);
}

#[tokio::test]
async fn an_acquire_that_a_stopped_server_took_is_found_by_its_repeat() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    calls(&store).inspect().await.expect("inspect");
    granted(&calls(&store), bob(1)).await;
    calls(&store).withdraw(bob(1)).await.expect("withdraw");
    server.stop_signal();
    let late = calls_within(&store, SHORT).acquire(alice(1), ttl(60), None).await;
    assert_says_of_lock(&late.expect_err("silence"), Indeterminate, "in time", "check server");
    server.cont_signal();
    // The server reads what the old connection had sent before it was closed, or not.
    let first = granted_in_the_end(&store, alice(1)).await;
    assert_eq!(granted(&calls(&store), alice(1)).await, first);
    let released = calls(&store).release(alice(1), first, None).await.expect("release");
    assert_eq!(released, ReleaseAnswer::Released);
}
