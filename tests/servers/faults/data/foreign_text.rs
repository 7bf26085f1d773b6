use std::time::Duration;

use leasehold::{
    LockRuntime,
    error::{InspectError, StoreErrorKind},
    fencing::FenceGate,
};
use leasehold_testkit::RedisServer;

use super::scene::{assert_says, connect, dump, exists, key, refusal, use_lock};
use crate::support::{matrix::row, storage, wait};

use StoreErrorKind::{Config, Corrupt};

row! {
    foreign_text: protected, control;
    fault: "a long text of another program stands where a lock has a short one",
    right: "every command says so, and the server is as fast for all others as before",
    control: "a pattern with two runs next to each other, over 10 KB",
}

/// How long the texts are.
const SIZES: [usize; 3] = [5_000, 100_000, 100_000_000];

/// What the texts are made of: what stands before, and what is repeated. The last looks like a lock whose label does
/// not end.
const TEXTS: [(&str, &str); 4] = [
    ("", "1"),
    ("v4 x", "1,"),
    ("v5 ", "1"),
    (
        "v4 xw------ 1700000000000001 9999999999999 1700000000000001 1700000000000001 9999999999999 b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7 ",
        "x",
    ),
];

/// What a script takes at most in one of several rounds: in the others it may have shared its core.
const SHORT: Duration = Duration::from_millis(5);
const ROUNDS: usize = 20;

/// How many strangers stand in a queue, and what a script may take that meets them: it looks at the first of them.
const CROWD: usize = 200_000;
const SHORT_IN_A_CROWD: Duration = Duration::from_millis(20);

/// Puts a text under a key. No script makes it: what a script leaves behind, a later one has to free.
fn put(server: &RedisServer, key: &str, (before, repeated): (&str, &str), size: usize) {
    let text = before.to_owned() + &repeated.repeat(size / repeated.len());
    server.command(&["SET", key, &text]);
}

fn measure(server: &RedisServer) {
    server.command(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    server.command(&["CONFIG", "SET", "slowlog-max-len", "10000"]);
    server.command(&["SLOWLOG", "RESET"]);
}

/// The longest that a command took since the measurement began.
fn longest(server: &RedisServer) -> Duration {
    type Entry = (u64, u64, u64, Vec<String>, String, String);
    let entries: Vec<Entry> = server.query(&["SLOWLOG", "GET", "10000"]);
    let scripts = entries.iter().filter(|entry| entry.3[0].to_uppercase().starts_with("EVAL"));
    Duration::from_micros(scripts.map(|entry| entry.2).max().expect("a script ran"))
}

fn protected() -> String {
    for size in SIZES {
        for text in TEXTS {
            let what = format!("{size} bytes of {text:?}");
            assert_short(&what, SHORT, || wait::on_one_thread(on_one_server(size, text)));
        }
        let what = format!("fields of {size} bytes");
        assert_short(&what, SHORT, || wait::on_one_thread(in_fields(size)));
    }
    let what = format!("a queue of {CROWD} strangers");
    assert_short(&what, SHORT_IN_A_CROWD, || wait::on_one_thread(in_a_crowd()));
    format!(
        "up to 100 MB in place of a lock, a place, a layout and a watermark: no script took {SHORT:?}; \
         {CROWD} strangers in a queue: none took {SHORT_IN_A_CROWD:?}"
    )
}

/// In one round at least, the longest script took less than `limit`.
fn assert_short(what: &str, limit: Duration, round: impl Fn() -> Duration) {
    let mut least = Duration::MAX;
    for _ in 0..ROUNDS {
        least = least.min(round());
        if least < limit {
            return;
        }
    }
    panic!("{what}: {least:?}");
}

/// Meets a text with every command; returns how long the longest script took.
async fn on_one_server(size: usize, text: (&str, &str)) -> Duration {
    let server = RedisServer::start();
    let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
    let (lock, waiting) = (locks.lock("a").expect("a name"), others.lock("a").expect("a name"));
    let lease = key("a", "lease");

    // In the midst of work: one holds, with a short ttl, and another one waits.
    let guard = lock.acquire().ttl(Duration::from_secs(1)).await.expect("a lease");
    let before = guard.fence().get();
    let waiter = tokio::spawn(waiting.acquire().wait_forever());
    wait::until("it waits", || exists(&server, &key("a", "queue"))).await;
    put(&server, &lease, text, size);
    measure(&server);
    let told = wait::soon("the waiter is told", waiter).await.expect("no panic");
    let says = |error| {
        let kind = if text.0.starts_with("v5") { Config } else { Corrupt };
        assert_says(&error, kind, &["lock \"a\""]);
        let words = error.to_string();
        assert!(words.len() < 1_000, "{} bytes are said", words.len());
    };
    says(refusal(told));
    wait::soon("the holder is told", guard.lost()).await;
    guard.release().await.expect_err("nothing to give back");

    // From then on.
    says(refusal(lock.try_acquire().await));
    says(refusal(wait::soon("an error", lock.acquire().wait_forever()).await));
    match locks.inspect("a").await {
        Err(InspectError::Store(error)) => says(error),
        other => panic!("{other:?}"),
    }
    locks.force_release("a").await.expect_err("no lock");
    assert!(list(&locks).await.is_err());
    // Somebody else's lock, meanwhile.
    use_lock(&others, "b").await;
    let longest = longest(&server);
    assert_eq!(server.query::<usize>(&["STRLEN", &lease]), text.0.len() + size, "as it was");
    server.command(&["DEL", &lease]);
    assert!(use_lock(&others, "a").await > before);
    longest
}

/// The first of all locks that a list finds.
async fn list(locks: &LockRuntime) -> Result<(), String> {
    let mut list = locks.list("a").expect("a pattern");
    list.next().await.expect("a lock").map(drop).map_err(|error| error.to_string())
}

/// Meets long texts in the other keys of a lock, and of a gate.
async fn in_fields(size: usize) -> Duration {
    let server = RedisServer::start();
    let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
    let (lock, waiting) = (locks.lock("a").expect("a name"), others.lock("a").expect("a name"));
    let long = "1".repeat(size);

    // The place of one that waits.
    let guard = lock.acquire().await.expect("a lease");
    let waiter = tokio::spawn(waiting.acquire().wait_forever());
    wait::until("it waits", || exists(&server, &key("a", "waiters"))).await;
    let [runtime]: [String; 1] = server.query(&["HKEYS", &key("a", "waiters")]);
    server.command(&["HSET", &key("a", "waiters"), &runtime, &long]);
    measure(&server);
    guard.release().await.expect("a lease ends, whatever stands in its queue");
    let told = wait::soon("the waiter is told", waiter).await.expect("no panic");
    assert_says(&refusal(told), Corrupt, &["lock \"a\"", "delete the key"]);
    let mut worst = longest(&server);
    server.command(&["DEL", &key("a", "queue"), &key("a", "waiters")]);

    // The layout of a hash.
    server.command(&["HSET", &key("b", "lease"), "v", &long]);
    measure(&server);
    let error = refusal(locks.lock("b").expect("a name").try_acquire().await);
    assert_says(&error, Corrupt, &["lock \"b\"", "delete the key"]);
    worst = worst.max(longest(&server));

    // The watermark of a gate.
    let (gate, guard) = (storage::gate_at(&server.url()), lock.acquire().await.expect("a lease"));
    put(&server, "stock:{7}:watermark", ("41 ", "1"), size);
    let strange = size < 1_000_000;
    let strange = strange.then(|| dump(&server, "stock:{7}:watermark"));
    measure(&server);
    gate.admit("stock:{7}", guard.stamp()).await.expect_err("no watermark");
    worst = worst.max(longest(&server));
    if let Some(strange) = strange {
        assert_eq!(dump(&server, "stock:{7}:watermark"), strange);
    }
    guard.release().await.expect("held to the end");
    worst
}

/// Meets very many members, each as long as that of a runtime, before the one that waits.
async fn in_a_crowd() -> Duration {
    let server = RedisServer::start();
    let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
    let (lock, waiting) = (locks.lock("a").expect("a name"), others.lock("a").expect("a name"));
    let guard = lock.acquire().await.expect("a lease");
    let waiter = tokio::spawn(waiting.acquire().wait_forever());
    wait::until("it waits", || exists(&server, &key("a", "queue"))).await;
    let members = (0..CROWD).flat_map(|number| ["0".to_owned(), format!("{number:036}")]);
    let members: Vec<_> = members.collect();
    for part in members.chunks(20_000) {
        let add = ["ZADD".to_owned(), key("a", "queue")];
        let command: Vec<&str> = add.iter().chain(part).map(String::as_str).collect();
        server.command(&command);
    }
    measure(&server);
    locks.inspect("a").await.expect("the holder is told");
    guard.release().await.expect("a lease ends, whatever stands in its queue");
    let granted = wait::soon("the waiter goes on", waiter).await.expect("no panic");
    granted.expect("a lease").release().await.expect("held to the end");
    longest(&server)
}

/// The pattern by which Leasehold once read the text of a lock.
const NAIVE: &str = "\
return string.match(redis.call('GET', KEYS[1]), '^(w?)(k?)([^ ,]*)(%S*) (%d+)(.*)$') and 1 or 0";

fn control() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        put(&server, "foreign", ("", "1"), 10_000);
        measure(&server);
        server.command(&["EVAL", NAIVE, "1", "foreign"]);
        let longest = longest(&server);
        assert!(longest > Duration::from_millis(200), "the control came to no harm: {longest:?}");
        "10 KB stop the whole server for more than 200 ms".into()
    })
}
