use leasehold::error::{ConnectError, StoreErrorKind::Config};
use leasehold_testkit::RedisServer;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use redis::Client;

use super::scene::{assert_says, connect, exists, key};
use crate::support::{matrix::row, patient, wait};

row! {
    channel_right_missing: protected, control;
    fault: "the user loses the right to its channels: no message about a grant can be sent",
    right: "waiters get their grants by heartbeat, as a metric shows; a new runtime is refused",
    control: "a waiter that waits only for its message",
}

const HAND_OVERS: u64 = 4;

fn protected() -> String {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || wait::on_one_thread(hand_over()));
    let mut woken = [0, 0];
    for (key, _, _, value) in recorder.snapshotter().snapshot().into_vec() {
        let (key, DebugValue::Counter(count)) = (key.key(), value) else { continue };
        if key.name() == "leasehold_wakeups_total" {
            let by = |source| key.labels().any(|label| label.value() == source);
            woken[0] += if by("heartbeat") { count } else { 0 };
            woken[1] += if by("push") { count } else { 0 };
        }
    }
    // The first of each runtime is the answer to its command, too.
    let [heartbeat, push] = woken;
    assert!(heartbeat >= HAND_OVERS && push == 0, "{heartbeat} {push}");
    format!("{HAND_OVERS} hand-overs without a message; a new runtime is refused")
}

async fn hand_over() {
    let server = RedisServer::start();
    let user = ["ACL", "SETUSER", "app", "reset", "on", ">s3cret", "~leasehold:*", "+@all"];
    server.command(&[&user[..], &["&leasehold:*"]].concat());
    let url = server.url_with("app", "s3cret", 0);
    let (locks, others) = (connect(&url).await, connect(&url).await);
    let subscribers = || server.query::<String>(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    let mut held = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    let first = others.lock("b").expect("a name").acquire().await.expect("a lease");
    wait::until("both listen", || subscribers().lines().count() == 2).await;
    server.command(&["ACL", "SETUSER", "app", "resetchannels"]);
    wait::until("nobody listens", || subscribers().lines().count() == 0).await;

    for number in 0..HAND_OVERS {
        let next = [&others, &locks][usize::from(number % 2 == 1)];
        let waits = next.lock("a").expect("a name").acquire().wait_forever();
        let waiter = tokio::spawn(waits);
        wait::until("it waits", || exists(&server, &key("a", "queue"))).await;
        let fence = held.fence();
        held.release().await.expect("held to the end");
        let granted = wait::soon("it has the lock", waiter).await.expect("no panic");
        held = granted.expect("a lease");
        assert!(held.fence() > fence);
    }
    held.release().await.expect("held to the end");
    first.release().await.expect("held to the end");
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    let denied: Vec<Vec<redis::Value>> = server.query(&["ACL", "LOG"]);
    assert!(format!("{denied:?}").contains("channel"), "{denied:?}");
    let Err(ConnectError::Store(error)) = patient::builder().connect(&url).await else {
        panic!("it hears nothing")
    };
    assert_says(&error, Config, &["grant the Redis user", "ACL LOG"]);
}

const RELEASE: &str = "redis.call('DEL', KEYS[1]) redis.pcall('PUBLISH', ARGV[1], 'free')";

fn control() -> String {
    let server = RedisServer::start();
    server.command(&["ACL", "SETUSER", "app", "reset", "on", ">s3cret", "~*", "+@all"]);
    let connection = |user| {
        let client = Client::open(server.url_with(user, "s3cret", 0)).expect("an address");
        client.get_connection().expect("the server answers")
    };
    server.command(&["ACL", "SETUSER", "waits", "reset", "on", ">s3cret", "~*", "&*", "+@all"]);
    let (mut holder, mut waiter) = (connection("app"), connection("waits"));
    let mut listening = waiter.as_pubsub();
    listening.subscribe("a").expect("the right to listen");
    server.command(&["SET", "a", "holder", "PX", "60000"]);
    let call = redis::Script::new(RELEASE);
    call.key("a").arg("a").invoke::<()>(&mut holder).expect("released");
    assert!(!exists(&server, "a"), "the lock is free");
    // Messages come in order: what is said after the release would come behind its message.
    server.command(&["PUBLISH", "a", "later"]);
    let heard: String = listening.get_message().and_then(|m| m.get_payload()).expect("a message");
    assert_eq!(heard, "later", "the control came to no harm");
    "the lock is free, its message never comes, the waiter waits".into()
}
