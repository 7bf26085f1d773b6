//! The processes of a herd: many tasks that want one lock at once.

use std::time::Duration;

use leasehold::{
    ReentrantLock,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{Event, history::Worker};
use redis::aio::MultiplexedConnection;
use tokio::{sync::broadcast, task::JoinSet};

use crate::support::{child, events, patient, raw, wait};

/// The role of a process whose tasks wait in line, and of one whose tasks all try when told.
pub(super) const ROLE: &str = "herd";
pub(super) const NAIVE: &str = "naive-herd";
/// The key that lets the first of them go, and the value that each increases by one.
pub(super) const GO: &str = "go";
pub(super) const VALUE: &str = "value";
/// The naive lock, and the channel on which its end is told.
const LOCK: &str = "lock";

/// Longer than all of it takes: nobody lapses.
const LONG: Duration = Duration::from_secs(60);

/// The module whose test is the program of a child.
pub(super) const CHILD: &str = module_path!();

#[test]
fn child_program() {
    match child::role().as_deref() {
        Some(ROLE) => child::run(wait_in_line()),
        Some(NAIVE) => child::run(wait_to_be_told()),
        _ => {}
    }
}

fn tasks() -> (Worker, Worker) {
    let number = |key| child::arg(key).parse::<Worker>().expect("a number");
    let first = number("index") * number("tasks");
    (first, first + number("tasks"))
}

/// Reads, and writes one more: two steps, for which the lock is there.
async fn increment(raw: &mut MultiplexedConnection) {
    let read: Option<u64> = redis::cmd("GET").arg(VALUE).query_async(raw).await.expect("an answer");
    let mut write = redis::cmd("GETSET");
    let write = write.arg(VALUE).arg(read.unwrap_or_default() + 1);
    write.query_async::<Option<u64>>(raw).await.expect("an answer");
}

async fn go(raw: &mut MultiplexedConnection) {
    while !redis::cmd("EXISTS").arg(GO).query_async::<bool>(raw).await.expect("an answer") {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn wait_in_line() {
    let (url, (from, to)) = (child::arg("url"), tasks());
    let mut raw = raw::connect(&url).await;
    let builder = patient::builder().ttl(LONG).claim_window(LONG);
    let locks = builder.connect(&url).await.expect("the server answers");
    let lock = locks.lock("a").expect("a name");
    // All others wait behind the one that holds it first.
    let first = if from == 0 { Some(lock.acquire().await.expect("a lease")) } else { None };
    println!("ready");
    let mut running = JoinSet::new();
    for worker in from..to {
        running.spawn(take(lock.clone(), raw.clone(), worker));
    }
    let all = usize::try_from(to - from).expect("a number");
    wait::until("all wait", || locks.footprint().waiting == all).await;
    println!("waiting");
    go(&mut raw).await;
    if let Some(guard) = first {
        guard.release().await.expect("held to the end");
    }
    running.join_all().await;
    println!("done");
}

async fn take(lock: ReentrantLock, mut raw: MultiplexedConnection, worker: Worker) {
    let asked_at = SystemClock.now();
    events::tell(Event::Asked { worker, at: asked_at });
    let guard = lock.acquire().wait_forever().await.expect("a lease");
    let (fence, lease, granted_at) = (guard.fence(), guard.id(), SystemClock.now());
    events::tell(Event::Granted { worker, fence, lease, asked_at, granted_at });
    let until = granted_at + guard.remaining();
    events::tell(Event::BelievedUntil { lease, until });
    increment(&mut raw).await;
    events::tell(Event::Incremented { worker });
    events::tell(Event::Released { lease, at: SystemClock.now() });
    guard.release().await.expect("held to the end");
}

async fn wait_to_be_told() {
    let (url, (from, to)) = (child::arg("url"), tasks());
    let mut raw = raw::connect(&url).await;
    let (told, _) = broadcast::channel(1024);
    let client = redis::Client::open(url).expect("an address");
    let telling = told.clone();
    // Beside the tasks: the client library's own stream would need another crate.
    let mut connection = client.get_connection().expect("the server answers");
    std::thread::spawn(move || {
        let mut listening = connection.as_pubsub();
        listening.subscribe(LOCK).expect("the right to listen");
        while listening.get_message().is_ok() {
            let _ = telling.send(());
        }
    });
    println!("ready");
    let mut running = JoinSet::new();
    for worker in from..to {
        running.spawn(try_when_told(raw.clone(), told.subscribe(), worker));
    }
    println!("waiting");
    go(&mut raw).await;
    running.join_all().await;
    println!("done");
}

/// Tries once for each message, and after a while even without.
async fn try_when_told(
    mut raw: MultiplexedConnection,
    mut told: broadcast::Receiver<()>,
    worker: Worker,
) {
    go(&mut raw).await;
    let mut take = redis::cmd("SET");
    take.arg(LOCK).arg(worker).arg("NX").arg("PX").arg(60_000);
    while !take.query_async::<bool>(&mut raw).await.expect("an answer") {
        let _ = tokio::time::timeout(Duration::from_millis(500), told.recv()).await;
    }
    increment(&mut raw).await;
    let mut give = redis::pipe();
    give.atomic().del(LOCK).publish(LOCK, "free");
    give.query_async::<()>(&mut raw).await.expect("an answer");
}
