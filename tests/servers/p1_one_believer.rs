//! P1 on a real server: of several processes that contend for one name, one at a time believes.
#![expect(clippy::disallowed_methods, reason = "workers in other processes take real time")]

use std::time::Duration;

use leasehold::{
    ReentrantLock,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{Event, History, RedisServer, Violation, history::Worker};
use redis::{Script, aio::MultiplexedConnection};
use tokio::task::JoinSet;

use crate::support::{child, events, patient, raw};

const PROCESSES: u64 = 3;
const TASKS: u64 = 4;
const ROUNDS: u64 = 12;
const INCREMENTS: u64 = PROCESSES * TASKS * ROUNDS;

/// Writes without a gate, and tells the storage's own order.
const WRITE: &str = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[2])";

#[test]
fn processes_that_contend_lose_no_increment() {
    let summary = contend("locked").check_strictly().expect("nobody was paused, no data was lost");
    assert_eq!(summary.increments, INCREMENTS);
    assert_eq!(summary.leases as u64, INCREMENTS);
    assert_eq!(summary.released, summary.leases);
    // No gate: the lock alone kept the order.
    assert_eq!((summary.accepted as u64, summary.refused), (INCREMENTS, 0));
    assert_eq!(summary.overlaps, []);
}

#[test]
fn control_without_the_lock_increments_are_lost() {
    let violations = contend("unlocked").check_strictly().expect_err("somebody's increment");
    let lost = |violation: &Violation| matches!(violation, Violation::LostUpdate { .. });
    assert!(violations.iter().any(lost), "{violations:?}");
}

/// Lets processes increment one key, and gathers what they saw.
fn contend(role: &str) -> History {
    let limit = Duration::from_secs(55);
    let server = RedisServer::start();
    let mut children: Vec<_> = (0..PROCESSES)
        .map(|i| {
            child::spawn(module_path!(), role, &[("url", &server.url()), ("index", &i.to_string())])
        })
        .collect();
    for child in &mut children {
        child.wait_for_line("ready", limit);
    }
    server.command(&["SET", "go", "1"]);
    for child in &mut children {
        child.wait_for_line("done", limit);
    }
    let value = server.query(&["GET", "counter"]);
    let told = children.iter().flat_map(|child| events::read(child.seen()));
    told.chain([Event::CounterRead { value }]).collect()
}

#[test]
fn child_program() {
    if let Some(role) = child::role() {
        child::run(compete(role == "locked"));
    }
}

/// Increments the key from several tasks.
async fn compete(locked: bool) {
    let (url, index) = (child::arg("url"), child::arg("index").parse::<u64>().expect("a number"));
    let mut storage = raw::connect(&url).await;
    let locks = patient::builder().connect(&url).await.expect("the server answers");
    let lock = locks.lock("counter").expect("a name");
    println!("ready");
    while !redis::cmd("EXISTS")
        .arg("go")
        .query_async::<bool>(&mut storage)
        .await
        .expect("an answer")
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (lock, storage) = (locked.then(|| lock.clone()), storage.clone());
        tasks.spawn(increment_often(index * TASKS + task, lock, storage));
    }
    tasks.join_all().await;
    println!("done");
}

async fn increment_often(
    worker: Worker,
    lock: Option<ReentrantLock>,
    mut storage: MultiplexedConnection,
) {
    for _ in 0..ROUNDS {
        match &lock {
            Some(lock) => increment_locked(worker, lock, &mut storage).await,
            None => drop(increment(&mut storage).await),
        }
        events::tell(Event::Incremented { worker });
    }
}

async fn increment_locked(
    worker: Worker,
    lock: &ReentrantLock,
    storage: &mut MultiplexedConnection,
) {
    let clock = SystemClock;
    let asked_at = clock.now();
    events::tell(Event::Asked { worker, at: asked_at });
    let guard = lock.acquire().wait_forever().await.expect("a lease");
    let (lease, fence, granted_at) = (guard.id(), guard.fence(), clock.now());
    events::tell(Event::Granted { worker, fence, lease, asked_at, granted_at });
    events::tell(Event::BelievedUntil { lease, until: granted_at + guard.remaining() });

    let at = clock.now();
    let order = increment(storage).await;
    events::tell(Event::Wrote { fence, lease, at, order, accepted: true });

    events::tell(Event::Released { lease, at: clock.now() });
    guard.release().await.expect("a lease that was held to the end");
}

/// Reads, waits a little, and writes one more: one that comes in between is overwritten.
async fn increment(storage: &mut MultiplexedConnection) -> u64 {
    let read = redis::cmd("GET").arg("counter").query_async::<Option<u64>>(storage).await;
    let value = read.expect("an answer").unwrap_or_default() + 1;
    tokio::time::sleep(Duration::from_millis(1)).await;
    let script = Script::new(WRITE);
    let wrote = script.key("counter").key("order").arg(value).invoke_async(storage).await;
    wrote.expect("an answer")
}
