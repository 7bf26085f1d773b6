use std::sync::Arc;

use leasehold::error::{
    StoreErrorKind,
    StoreErrorKind::{Config, Corrupt},
};
use leasehold_testkit::RedisServer;
use tokio::task::JoinSet;

use super::scene::{LONG, assert_says, connect, dump, exists, key, refusal, replace, use_lock};
use crate::support::{matrix::row, wait};

row! {
    corrupt_lease: protected, control;
    fault: "the key of a lease has another type, or another layout",
    right: "an error names the lock at once, also for waiters; nothing is overwritten",
    control: "a script that reads one field of the hash and waits for PTTL",
}

/// A lease as the first layout had it.
const LAYOUT_1: &[&str] = &[
    "HSET",
    "v",
    "1",
    "b8a5b1e6-5a0e-4b5b-9d7e-0c6f3d1c2a10:7",
    "1",
    "fence",
    "1700000000000001",
    "last",
    "1700000000000016",
    "since",
    "1700000000000016",
    "label",
    "jobs",
];

/// A lock as the second layout had it.
const LAYOUT_2: &[&str] = &["HSET", "v", "2", "lock", "1763864400000000 1764544800000"];

/// What stands in the place of the lease, and what is said about it.
const STRANGE: [(&[&str], StoreErrorKind, &str); 8] = [
    (&["SET", "somebody's"], Corrupt, "another program uses the key"),
    (&["RPUSH", "somebody's", "list"], Corrupt, "another program uses the key"),
    (&["HSET", "v", "99", "holder", "somebody"], Config, "layout version \"99\""),
    (&["HSET", "holder", "somebody"], Config, "layout version \"\""),
    (LAYOUT_1, Config, "layout version \"1\""),
    (LAYOUT_2, Config, "layout version \"2\""),
    (&["SET", "1763864400000000 1764544800000"], Config, "layout version \"3\""),
    (&["SET", "v5 1763864400000000"], Config, "layout version \"5\""),
];

fn protected() -> String {
    wait::on_one_thread(async {
        let server = Arc::new(RedisServer::start());
        let mut cases = JoinSet::new();
        for (number, (put, kind, words)) in STRANGE.into_iter().enumerate() {
            cases.spawn(refuse(Arc::clone(&server), format!("case/{number}"), put, kind, words));
        }
        let refused: u32 = cases.join_all().await.into_iter().sum();
        in_company(&server).await;
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        format!("{refused} refusals name the lock; keys as they were; then granted")
    })
}

/// Lets tasks meet a strange key; returns how many were refused.
async fn refuse(
    server: Arc<RedisServer>,
    name: String,
    put: &[&str],
    kind: StoreErrorKind,
    words: &str,
) -> u32 {
    let (locks, others) = (connect(&server.url()).await, connect(&server.url()).await);
    let (lease, named) = (key(&name, "lease"), format!("lock {name:?}"));
    let says = |error| assert_says(&error, kind, &[&named, words]);
    let (lock, waiting) = (locks.lock(&name).expect("a name"), others.lock(&name).expect("a name"));

    // In the midst of work: one holds, with a short ttl, and another one waits.
    let guard = lock.acquire().ttl(LONG / 30).await.expect("a lease");
    let before = guard.fence().get();
    let waiter = tokio::spawn(waiting.acquire().wait_forever());
    wait::until("it waits", || exists(&server, &key(&name, "queue"))).await;
    replace(&server, &lease, put);
    let strange = dump(&server, &lease);
    says(refusal(wait::soon("the waiter is told", waiter).await.expect("no panic")));
    wait::soon("the holder is told", guard.lost()).await;
    drop(guard);

    // From then on.
    says(refusal(lock.try_acquire().await));
    says(refusal(wait::soon("an error", lock.acquire().wait_forever()).await));
    says(refusal(wait::soon("an error", waiting.acquire()).await));
    assert_eq!(dump(&server, &lease), strange, "{put:?}");
    server.command(&["DEL", &lease]);
    assert!(use_lock(&others, &name).await > before);
    4
}

/// Commands of one moment share calls; each strange key spoils its own answer alone.
async fn in_company(server: &RedisServer) {
    const TASKS: usize = 100;
    let locks = connect(&server.url()).await;
    // The server learns the script.
    use_lock(&locks, "before").await;
    let key_of = |number| key(&format!("task/{number}"), "lease");
    for (number, (put, ..)) in STRANGE.into_iter().enumerate() {
        replace(server, &key_of(number), put);
    }
    let calls = || server.calls("evalsha");
    let before = calls();
    server.stop_signal();
    let tasks: Vec<_> = (0..TASKS)
        .map(|number| {
            let lock = locks.lock(format!("task/{number}")).expect("a name");
            tokio::spawn(async move { lock.try_acquire().await })
        })
        .collect();
    wait::a_moment().await;
    server.cont_signal();
    let mut held = Vec::new();
    for (number, task) in tasks.into_iter().enumerate() {
        let outcome = wait::soon("an answer", task).await.expect("no panic");
        if let Some((_, kind, words)) = STRANGE.get(number) {
            assert_says(&refusal(outcome), *kind, &[&format!("lock \"task/{number}\""), words]);
        } else {
            held.push(outcome.expect("no error").expect("a free lock"));
        }
    }
    let sent = calls() - before;
    assert!(sent < TASKS as u64 / 4, "{sent} calls for {TASKS} commands");
    for guard in held {
        guard.release().await.expect("held to the end");
    }
    for number in 0..STRANGE.len() {
        server.command(&["DEL", &key_of(number)]);
    }
}

/// Takes a lock that has no owner, else tells for how long to wait.
const NAIVE: &str = "\
if redis.call('HGET', KEYS[1], 'owner') then return redis.call('PTTL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 0";

fn control() -> String {
    let server = RedisServer::start();
    let ask = |lock: &str| server.query::<i64>(&["EVAL", NAIVE, "1", lock, "me", "60000"]);
    server.command(&["HSET", "upgraded", "v", "99", "holder", "somebody"]);
    assert_eq!(ask("upgraded"), 0, "it sees that somebody holds it");
    let holder: String = server.query(&["HGET", "upgraded", "holder"]);
    server.command(&["HSET", "persisted", "owner", "nobody who lives"]);
    let asks = 100;
    assert!((0..asks).all(|_| ask("persisted") == -1), "it knows for how long to wait");
    format!("two processes hold what {holder} held; {asks} acquires are told to wait for -1 ms")
}
