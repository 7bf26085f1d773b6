//! A connection is given up when nothing is read on it, and not because one answer is late.

use std::{
    future::{Future, poll_fn},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use StoreErrorKind::Indeterminate;
use leasehold_core::{Clock, StoreErrorKind, SystemClock, store::HoldAnswer};
use leasehold_redis::RedisStore;
use leasehold_testkit::{
    FaultProxy, Patience, RedisServer, Reply, ScriptedPeer,
    contract::{alice, bob, ttl},
    proxy::{Direction, Links},
};

use super::support::{
    PATIENCE, assert_says_of_lock, calls, calls_within, config, connect_with, granted,
};

/// Half of the round trip.
const WAY: Duration = Duration::from_millis(500);
/// As a heartbeat has it whose claim window is below the round trip.
const SHORT: Duration = Duration::from_millis(200);

async fn pass(time: Duration) {
    SystemClock.sleep_until(SystemClock.now() + time).await;
}

async fn store_behind(proxy: &FaultProxy) -> Arc<RedisStore> {
    let config = config(&proxy.url()).connections(1).connect_timeout(PATIENCE);
    connect_with(&config).await.expect("the server answers")
}

/// The ids of a store's connections, as the server knows them.
fn connections(server: &RedisServer) -> Vec<String> {
    let clients: String = server.query(&["CLIENT", "LIST"]);
    let named = clients.lines().filter(|line| line.contains(" name=leasehold "));
    let mut ids: Vec<_> = named.filter_map(|line| Some(line.split(' ').next()?.into())).collect();
    ids.sort();
    ids
}

/// The one connection of a store that has just connected, when those of the check are gone.
async fn settled(server: &RedisServer) -> Vec<String> {
    let alone = || async { Some(connections(server)).filter(|ids| ids.len() == 1) };
    Patience::of(PATIENCE).until_async(alone).await.expect("one connection")
}

/// Round trips that are longer than what a heartbeat waits.
#[tokio::test]
async fn late_answers_do_not_cost_the_connection() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    proxy.delay_all(WAY);
    let store = store_behind(&proxy).await;
    let before = settled(&server).await;
    for round in 1..=6 {
        let error = calls_within(&store, SHORT).acquire(alice(1), ttl(60), None).await;
        let error = error.expect_err("a round trip takes longer");
        assert_says_of_lock(&error, Indeterminate, "no answer within", "more time");
        // The command that has time enough gets its answer on the same connection.
        if round % 3 == 0 {
            granted(&calls(&store), alice(1)).await;
        }
    }
    pass(WAY * 5).await;
    // Beside it there is one for renewals by now.
    assert!(connections(&server).contains(&before[0]), "{before:?}");
}

/// The other half: a link as slow as that which goes mute is replaced.
#[tokio::test]
async fn a_slow_connection_that_goes_mute_is_replaced() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    proxy.delay_all(WAY);
    let store = store_behind(&proxy).await;
    let before = settled(&server).await;
    let fence = granted(&calls(&store), alice(1)).await;
    proxy.black_hole_links(Links::All, Direction::ToClient);
    calls_within(&store, SHORT).hold(alice(1), fence, (2, 1), ttl(60)).await.expect_err("mute");
    let held = || async {
        let hold = calls_within(&store, WAY * 8).hold(alice(1), fence, (2, 1), ttl(60)).await;
        hold.ok()
    };
    let held = Patience::of(PATIENCE).until_async(held).await;
    assert!(matches!(held, Some(HoldAnswer::Held { .. })), "{held:?}");
    assert!(connections(&server).iter().any(|id| !before.contains(id)), "a new one was made");
}

/// Nothing is read on a fast link within the deadline: one command, and the next has a new one.
#[tokio::test]
async fn a_fast_connection_that_goes_mute_is_replaced_at_the_first_deadline() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let store = store_behind(&proxy).await;
    let fence = granted(&calls(&store), alice(1)).await;
    proxy.black_hole_links(Links::All, Direction::ToClient);
    let within = calls_within(&store, Duration::from_secs(1));
    within.hold(alice(1), fence, (2, 1), ttl(60)).await.expect_err("mute");
    // One command: it is the next one that is answered, and not the one after it.
    let held = calls(&store).hold(alice(1), fence, (2, 1), ttl(60)).await.expect("a new one");
    assert!(matches!(held, HoldAnswer::Held { .. }), "{held:?}");
}

/// Answers that were read long ago, and are looked at late, do not keep a connection that is mute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_looked_at_late_do_not_keep_a_mute_connection() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let store = store_behind(&proxy).await;
    let fence = granted(&calls(&store), alice(1)).await;
    let hold = move |within: Duration| {
        let store = Arc::clone(&store);
        async move { calls_within(&store, within).hold(alice(1), fence, (2, 1), ttl(60)).await }
    };
    hold(PATIENCE).await.expect("from now on the server knows the script");
    let mut answered: Vec<_> = (0..40).map(|_| Box::pin(hold(PATIENCE))).collect();
    for call in &mut answered {
        let sent = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
        assert!(sent.is_pending(), "it was answered before it was sent");
    }
    pass(SHORT).await;
    proxy.black_hole_links(Links::All, Direction::ToClient);
    let probe = tokio::spawn({
        let hold = hold.clone();
        async move { while hold(SHORT).await.is_err() {} }
    });
    let mut unlooked = answered.len();
    for call in answered {
        if probe.is_finished() {
            break;
        }
        pass(SHORT / 3).await;
        call.await.expect("it was answered long ago");
        unlooked -= 1;
    }
    probe.await.expect("no panic");
    assert!(unlooked > 0, "each of the answers kept the connection");
}

/// What is between us and the server lost one answer and goes on: from then on every answer would
/// be taken for that of an earlier command.
#[tokio::test]
async fn a_connection_whose_answers_are_shifted_is_replaced() {
    let (lost, hellos) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let (losing, greeted) = (Arc::clone(&lost), Arc::clone(&hellos));
    let peer = ScriptedPeer::start(move |command: &[String]| match command[0].as_str() {
        "HELLO" => {
            greeted.fetch_add(1, Ordering::Relaxed);
            Reply::hello("7.2.0", 3)
        }
        "CLIENT" => Reply::ok(),
        "PING" => command.get(1).map_or_else(|| Reply::Simple("PONG".into()), Reply::bulk),
        _ if !command.iter().any(|word| word.contains("orders/")) => Reply::bulk("ok"),
        _ if losing.swap(false, Ordering::Relaxed) => Reply::Silence,
        _ => Reply::Array(vec![Reply::Array(vec![
            Reply::bulk("busy"),
            Reply::Integer(1000),
            Reply::Integer(0),
        ])]),
    });
    let peer = peer.await.expect("a peer");
    let config = config(&peer.url()).connections(1);
    let store = connect_with(&config).await.expect("it imitates a server");
    calls(&store).acquire(alice(1), ttl(60), None).await.expect("an answer");
    let before = hellos.load(Ordering::Relaxed);
    lost.store(true, Ordering::Relaxed);
    let calls_soon = calls_within(&store, Duration::from_millis(500));
    let shifted = calls_soon.about("orders/43");
    let (first, second) = tokio::join!(
        calls_soon.acquire(alice(1), ttl(60), None),
        shifted.acquire(bob(1), ttl(60), None),
    );
    assert!(first.is_ok() && second.is_err(), "{first:?} {second:?}");
    let replaced = || async {
        calls_within(&store, WAY).acquire(alice(1), ttl(60), None).await.ok()?;
        (hellos.load(Ordering::Relaxed) > before).then_some(())
    };
    let replaced = Patience::of(PATIENCE).until_async(replaced).await;
    assert!(replaced.is_some(), "the connection whose answers are shifted is used for ever");
}
