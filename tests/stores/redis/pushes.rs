//! What a server tells a runtime unasked: on one connection, which is made anew as often as it is
//! lost and closed when nobody listens.

use std::{future::ready, sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Clock, Entropy, Fence, LockName, LockStore, RuntimeId, StoreErrorKind,
    SystemClock, SystemEntropy,
    store::{Granted, Push},
};
use leasehold_redis::{RedisConfig, RedisStore};
use leasehold_testkit::{
    Log, ManualClock, Patience, RedisServer,
    contract::{Calls, PushLog, alice},
};
use tokio::runtime::Handle;

use super::support::{PATIENCE, assert_says, calls, config, connect, connect_with, granted};

/// A store on a server, with an pushes for one runtime.
struct Scene {
    store: Arc<RedisStore>,
    runtime: RuntimeId,
    pushes: Arc<PushLog>,
}

impl Scene {
    async fn new(config: &RedisConfig) -> Self {
        Self::with_clock(config, Arc::new(SystemClock)).await
    }

    async fn with_clock(config: &RedisConfig, clock: Arc<dyn Clock>) -> Self {
        let runtime = SystemEntropy.runtime_id();
        let store = RedisStore::connect(config, clock, Handle::current(), runtime).await;
        let store = Arc::new(store.expect("the server lets everybody in"));
        let pushes = PushLog::listen(&*store, runtime).await;
        Self { store, runtime, pushes }
    }

    fn channel(&self) -> String {
        self.store.keys().channel(self.runtime)
    }

    /// Publishes to the runtime; how many heard it.
    fn publish(&self, server: &RedisServer, text: &str) -> u32 {
        server.query(&["PUBLISH", &self.channel(), text])
    }
}

/// How many connections of the server are subscribed.
fn subscribed(server: &RedisServer) -> usize {
    let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    clients.lines().filter(|line| line.contains("name=leasehold ")).count()
}

async fn all_hung_up(server: &RedisServer) {
    let none = || async { (subscribed(server) == 0).then_some(()) };
    Patience::of(PATIENCE).until_async(none).await.expect("nobody is subscribed");
}

fn force_released(fence: u64) -> (String, Push) {
    let name = LockName::new("orders 42").expect("a name");
    let token = Fence::try_from(fence).expect("a token");
    let text = format!("force-released {} {fence} orders 42", alice(7));
    (text, Push::ForceReleased { name, id: alice(7), fence: token })
}

#[tokio::test]
async fn messages_are_heard_in_their_order_after_listening() {
    let server = RedisServer::start();
    let scene = Scene::new(&config(&server.url())).await;
    let (text, ended) = force_released(5);
    let grant = format!("granted {} 17 32 9 3000 1 0 a b", alice(8));
    assert_eq!(scene.publish(&server, &grant), 1);
    assert_eq!(scene.publish(&server, &text), 1);
    let token = |number: u64| Fence::try_from(number).expect("a token");
    let granted = Push::Granted {
        name: LockName::new("a b").expect("a name"),
        id: alice(8),
        granted: Granted {
            first: token(17),
            last: token(32),
            remaining: Duration::from_secs(3),
            contended: true,
            regressed: false,
        },
        heartbeat: 9,
    };
    assert_eq!([scene.pushes.next().await, scene.pushes.next().await], [granted, ended]);
}

#[tokio::test]
async fn a_forced_release_is_heard_by_the_holder() {
    let server = RedisServer::start();
    let scene = Scene::new(&config(&server.url())).await;
    let id = AcquisitionId::new(scene.runtime, 1);
    let calls = calls(&scene.store);
    let fence = granted(&calls, id).await;
    calls.force_release(id, fence).await.expect("force_release");
    let ended = Push::ForceReleased { name: calls.name().clone(), id, fence };
    assert_eq!(scene.pushes.next().await, ended);
}

#[tokio::test]
async fn a_user_with_a_database_hears_too() {
    let server = RedisServer::builder().tcp().start();
    let rights = ["~leasehold:*", "&leasehold:*", "+@all"];
    server.command(&[&["ACL", "SETUSER", "app", "on", ">sesame"][..], &rights].concat());
    for protocol in ["resp2", "resp3"] {
        let url = format!("{}?protocol={protocol}", server.url_with("app", "sesame", 3));
        let scene = Scene::new(&config(&url)).await;
        let (text, ended) = force_released(5);
        scene.publish(&server, &text);
        assert_eq!(scene.pushes.next().await, ended, "{protocol}");
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn what_is_told_under_tls_is_heard() {
    let server = RedisServer::builder().tls().start();
    let ca = server.ca_pem().expect("a server with TLS has one");
    let scene = Scene::new(&config(&server.url()).tls_root_ca(ca)).await;
    let (text, ended) = force_released(5);
    scene.publish(&server, &text);
    assert_eq!(scene.pushes.next().await, ended);
}

#[tokio::test]
async fn a_killed_subscription_comes_back() {
    let server = RedisServer::start();
    let scene = Scene::new(&config(&server.url())).await;
    let killed: usize = server.query(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    assert_eq!(killed, 1);
    assert_eq!(scene.pushes.next().await, Push::Listening);
    let (text, ended) = force_released(5);
    scene.publish(&server, &text);
    assert_eq!(scene.pushes.next().await, ended);
    assert_eq!(subscribed(&server), 1);
}

#[tokio::test]
async fn a_restarted_server_is_heard_again() {
    let server = RedisServer::builder().tcp().start();
    let scene = Scene::new(&config(&server.url())).await;
    server.restart();
    assert_eq!(scene.pushes.next().await, Push::Listening);
    assert_eq!(scene.publish(&server, &force_released(5).0), 1);
}

#[tokio::test]
async fn a_subscription_that_is_killed_all_the_time_recovers_every_time() {
    let server = RedisServer::start();
    let scene = Scene::new(&config(&server.url())).await;
    let start = SystemClock.now();
    let mut rounds = 0_usize;
    while SystemClock.now().saturating_since(start) < Duration::from_secs(3) {
        let killed: usize = server.query(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        rounds += killed;
        SystemClock.sleep_until(SystemClock.now() + Duration::from_millis(100)).await;
    }
    for _ in 0..rounds {
        assert_eq!(scene.pushes.next().await, Push::Listening);
    }
    assert!(rounds >= 15, "it came back {rounds} times only");
    let (text, ended) = force_released(5);
    assert_eq!(scene.publish(&server, &text), 1);
    assert_eq!(scene.pushes.next().await, ended);
    assert_eq!(subscribed(&server), 1);
}

#[tokio::test]
async fn a_subscription_that_is_always_cut_at_once_is_made_less_and_less_often() {
    let server = RedisServer::start();
    let scene = Scene::new(&config(&server.url())).await;
    let (start, mut cuts) = (SystemClock.now(), 0);
    while SystemClock.now().saturating_since(start) < Duration::from_secs(3) {
        cuts += server.query::<usize>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        SystemClock.sleep_until(SystemClock.now() + Duration::from_millis(1)).await;
    }
    // With pauses of 10 to 20 ms it would be made about 150 times.
    assert!((2..50).contains(&cuts), "it was made {cuts} times");
    let (text, ended) = force_released(5);
    let heard = || async { (scene.publish(&server, &text) == 1).then_some(()) };
    Patience::of(PATIENCE).until_async(heard).await.expect("it comes back");
    let told = || ready(scene.pushes.drain().contains(&ended).then_some(()));
    Patience::of(PATIENCE).until_async(told).await.expect("it is heard");
}

#[tokio::test]
async fn a_subscriber_that_is_killed_for_its_backlog_comes_back() {
    let server = RedisServer::start();
    let scene = Scene::new(&config(&server.url())).await;
    server.command(&["CONFIG", "SET", "client-output-buffer-limit", "pubsub 64kb 0 0"]);
    scene.publish(&server, &"x".repeat(1 << 20));
    assert_eq!(scene.pushes.next().await, Push::Listening);
}

#[tokio::test]
async fn a_connection_that_is_silent_is_noticed_within_five_seconds() {
    let server = RedisServer::builder().tcp().start();
    let clock = ManualClock::new();
    let scene = Scene::with_clock(&config(&server.url()), Arc::new(clock.clone())).await;
    server.stop_signal();
    clock.travel(Duration::from_millis(5_001)).await;
    server.cont_signal();
    // It was given up, though the server would answer now; the pause before the next attempt is
    // at most 20 ms.
    clock.travel(Duration::from_millis(20)).await;
    assert_eq!(scene.pushes.next().await, Push::Listening);
    let one = || async { (subscribed(&server) == 1).then_some(()) };
    Patience::of(PATIENCE).until_async(one).await.expect("the old one is closed");
}

#[tokio::test]
async fn a_connection_that_answers_stays() {
    let server = RedisServer::builder().tcp().start();
    let clock = ManualClock::new();
    let scene = Scene::with_clock(&config(&server.url()), Arc::new(clock.clone())).await;
    let id: u64 = ids(&server);
    for _ in 0..10 {
        clock.travel(Duration::from_secs(2)).await;
        // Its answer comes in real time.
        let pings = || async {
            let stats: String = server.query(&["INFO", "commandstats"]);
            stats.contains("cmdstat_ping").then_some(())
        };
        Patience::of(PATIENCE).until_async(pings).await.expect("it asks");
        SystemClock.sleep_until(SystemClock.now() + Duration::from_millis(20)).await;
    }
    assert_eq!((scene.pushes.drain(), ids(&server)), (Vec::new(), id));
}

/// The id of the only connection that is subscribed.
fn ids(server: &RedisServer) -> u64 {
    let clients: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    let [line] = clients.lines().collect::<Vec<_>>()[..] else { panic!("{clients}") };
    let id = line.split(' ').next().and_then(|id| id.strip_prefix("id="));
    id.and_then(|id| id.parse().ok()).expect("a client has an id")
}

#[tokio::test]
async fn a_runtime_has_one_subscription_which_goes_with_its_listener() {
    let server = RedisServer::start();
    let mut scene = Scene::new(&config(&server.url())).await;
    assert_eq!(subscribed(&server), 1);
    // Another listener takes the place of the first.
    let first = scene.pushes;
    scene.pushes = PushLog::listen(&*scene.store, scene.runtime).await;
    let one = || async { (subscribed(&server) == 1).then_some(()) };
    Patience::of(PATIENCE).until_async(one).await.expect("the old one is closed");
    let (text, ended) = force_released(5);
    scene.publish(&server, &text);
    assert_eq!(scene.pushes.next().await, ended);
    assert_eq!(first.drain(), [], "the first listener hears no more");
    // Nobody listens; nothing is published that would show it.
    scene.pushes = Arc::default();
    let start = SystemClock.now();
    all_hung_up(&server).await;
    assert!(SystemClock.now().saturating_since(start) < Duration::from_secs(6));
}

#[tokio::test]
async fn a_message_for_a_listener_that_is_gone_ends_the_subscription_at_once() {
    let server = RedisServer::start();
    let clock = ManualClock::new();
    let mut scene = Scene::with_clock(&config(&server.url()), Arc::new(clock)).await;
    scene.pushes = Arc::default();
    scene.publish(&server, &force_released(5).0);
    all_hung_up(&server).await;
}

#[tokio::test]
async fn the_subscription_goes_with_the_store() {
    let server = RedisServer::start();
    let Scene { store, pushes, .. } = Scene::new(&config(&server.url())).await;
    assert_eq!(subscribed(&server), 1);
    drop(store);
    all_hung_up(&server).await;
    assert_eq!(pushes.drain(), []);
}

#[tokio::test]
async fn a_store_subscribes_only_when_somebody_listens() {
    let server = RedisServer::start();
    let store = connect_with(&config(&server.url())).await.expect("the server answers");
    granted(&calls(&store), alice(1)).await;
    all_hung_up(&server).await;
}

#[tokio::test]
async fn a_right_to_subscribe_that_is_missing_shows_at_connect() {
    let server = RedisServer::start();
    let rights = ["~leasehold:*", "&leasehold:*", "+@all", "-subscribe"];
    server.command(&[&["ACL", "SETUSER", "app", "on", ">sesame"][..], &rights].concat());
    let error = connect(&server.url_with("app", "sesame", 0)).await.expect_err("refused");
    assert_says(&error, StoreErrorKind::Config, "NOPERM", "docs/operations.md");
    assert!(error.what().contains("subscribe"), "{error}");
    assert!(!error.to_string().contains("sesame"), "{error}");
}

#[tokio::test]
async fn a_right_to_subscribe_that_goes_later_is_asked_for_seldom_and_told() {
    let server = RedisServer::start();
    let rights = ["~leasehold:*", "&leasehold:*", "+@all"];
    server.command(&[&["ACL", "SETUSER", "app", "on", ">sesame"][..], &rights].concat());
    let (log, _collecting) = Log::of_this_thread();
    let clock = ManualClock::new();
    let url = server.url_with("app", "sesame", 0);
    let scene = Scene::with_clock(&config(&url), Arc::new(clock.clone())).await;
    server.command(&["ACL", "SETUSER", "app", "-subscribe"]);
    server.command(&["CLIENT", "KILL", "TYPE", "pubsub"]);
    for second in 0..15 {
        let told = || async {
            log.tells("the runtime receives no messages from the server").then_some(())
        };
        if second > 0 {
            Patience::of(PATIENCE).until_async(told).await.expect("it is told");
        }
        clock.travel(Duration::from_secs(1)).await;
    }
    assert_eq!(log.count("the runtime receives no messages from the server"), 1);
    assert!(log.tells("NOPERM") && !log.tells("sesame"), "{log:?}");
    granted(&calls_on(&scene, &clock), alice(1)).await;
    server.command(&["ACL", "SETUSER", "app", "+subscribe"]);
    // An attempt takes real time. The next jump of the clock may end it: another one follows.
    let hears = || async {
        clock.travel(Duration::from_secs(16)).await;
        let heard = || ready(scene.pushes.drain_all().pop());
        Patience::of(Duration::from_secs(1)).until_async(heard).await
    };
    assert_eq!(Patience::of(PATIENCE).until_async(hears).await, Some(Push::Listening));
}

fn calls_on(scene: &Scene, clock: &ManualClock) -> Calls {
    let name = LockName::new("orders/42").expect("a name");
    let store = Arc::clone(&scene.store) as Arc<dyn LockStore>;
    Calls::new(store, &name, clock.now() + PATIENCE)
}

/// A lazy runtime subscribes while its server is still checked.
#[tokio::test]
async fn the_message_of_the_check_of_a_server_is_not_strange() {
    let server = RedisServer::start();
    let scene = Scene::new(&config(&server.url())).await;
    assert_eq!(scene.publish(&server, "preflight"), 1);
    let (text, ended) = force_released(5);
    scene.publish(&server, &text);
    assert_eq!(scene.pushes.next().await, ended);
}

#[tokio::test]
async fn what_is_not_understood_is_passed_on_as_that() {
    let server = RedisServer::start();
    let scene = Scene::new(&config(&server.url())).await;
    let grant = |rest: &str| format!("granted {} {rest}", alice(8));
    let strange = [
        String::new(),
        "hello".into(),
        "granted".into(),
        grant(""),
        grant("2 1 9 3000 1 0"),
        grant("1 -2 9 3000 1 0 name"),
        grant("1 2 9 soon 1 0 name"),
        format!("force-released {} x name", alice(8)),
        "released 1 2 3".into(),
    ];
    for text in &strange {
        assert_eq!(scene.publish(&server, text), 1);
        assert_eq!(scene.pushes.next().await, Push::Unreadable, "{text}");
    }
    let (text, ended) = force_released(5);
    scene.publish(&server, &text);
    assert_eq!(scene.pushes.next().await, ended);
    assert_eq!(subscribed(&server), 1);
}
