//! P7 and P9 on a real server: what a crowd of waiters costs, in memory, places and commands.
#![expect(clippy::disallowed_methods, reason = "processes take real time")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold::{LockRuntime, LockRuntimeBuilder};
use leasehold_testkit::{ChildProcess, RedisServer, resident};

use crate::support::{child, line, patient, wait};

const TASKS: usize = 10_000;
const NAMES: usize = 5_000;
/// A timer among them: each call that waits reports itself when that takes long, and looks from
/// time to time whether the server still answers.
const BYTES_PER_TASK: usize = 4096;
/// Far below the 7,500 commands per second that the names would need one by one, and far above the
/// 200 that are the aim: how many share a command depends on how busy the machine is. The bound
/// itself is asserted in virtual time.
const HEARTBEATS_PER_SECOND: f64 = 1_500.0;
/// How long commands are counted.
const COUNTED: Duration = Duration::from_secs(6);
const LIMIT: Duration = Duration::from_secs(50);

fn builder() -> LockRuntimeBuilder {
    // Renewals are no part of what is counted.
    patient::builder().ttl(Duration::from_secs(600))
}

async fn runtime_at(url: &str) -> LockRuntime {
    builder().connect(url).await.expect("the server answers")
}

fn crowd(role: &str, server: &RedisServer) -> ChildProcess {
    child::spawn(module_path!(), role, &[("url", &server.url())])
}

#[tokio::test]
async fn ten_thousand_tasks_have_one_place_and_are_served_in_order() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let lock = locks.lock("a").expect("a name");
    let guard = lock.acquire().renew(false).await.expect("a lease");
    let mut child = crowd("tasks", &server);
    let bytes: usize = child.wait_for_line("bytes ", LIMIT).parse().expect("a number");
    println!("{bytes} bytes per waiting task");
    assert_eq!(line::length(&server), 1);
    assert!(bytes <= BYTES_PER_TASK, "{bytes} bytes per waiting task");
    guard.release().await.expect("held to the end");
    assert_eq!(child.wait_for_line("served ", LIMIT), format!("{TASKS} in order"));
    assert_eq!(line::length(&server), 0);
}

#[tokio::test]
async fn five_thousand_names_share_one_subscription_and_few_commands() {
    let server = RedisServer::start();
    let locks = runtime_at(&server.url()).await;
    let mut guards = Vec::with_capacity(NAMES);
    for n in 0..NAMES {
        let lock = locks.lock(format!("name/{n}")).expect("a name");
        guards.push(lock.acquire().renew(false).await.expect("a lease"));
    }
    let mut child = crowd("names", &server);
    child.wait_for_line("waiting", LIMIT);
    let queues = || server.query::<Vec<String>>(&["KEYS", "*:queue"]).len();
    wait::until("everybody stands in line", || queues() == NAMES).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Nothing else than heartbeats is under way.
    let before = server.calls("evalsha");
    let began = server.micros();
    tokio::time::sleep(COUNTED).await;
    let sent = server.calls("evalsha") - before;
    let took = Duration::from_micros(server.micros() - began).as_secs_f64();
    let rate = f64::from(u32::try_from(sent).expect("not that many")) / took;
    println!("{rate:.0} heartbeat commands per second for {NAMES} names");
    assert_eq!(subscribers(&server), 1, "one subscription for all names of the child");
    // The places are kept: nobody has lapsed.
    assert_eq!(queues(), NAMES);
    assert!(rate <= HEARTBEATS_PER_SECOND, "{rate:.0} heartbeat commands per second");
}

/// The subscribers that belong to the crowd.
fn subscribers(server: &RedisServer) -> usize {
    let list: String = server.query(&["CLIENT", "LIST", "TYPE", "pubsub"]);
    list.lines().filter(|line| line.contains("name=leasehold:crowd")).count()
}

#[test]
fn child_program() {
    match child::role().as_deref() {
        Some("tasks") => child::run(tasks()),
        Some("names") => child::run(names()),
        _ => {}
    }
}

async fn connect() -> LockRuntime {
    let locks = builder().service("crowd").connect(&child::arg("url")).await;
    locks.expect("the server answers")
}

/// Lets many tasks wait for one name, tells what each costs, and in which order they are served.
async fn tasks() {
    let locks = connect().await;
    let lock = locks.lock("a").expect("a name");
    let served = Arc::new(AtomicUsize::new(0));
    let spawn = |n: usize| {
        let (lock, served) = (lock.clone(), Arc::clone(&served));
        drop(tokio::spawn(async move {
            let guard = lock.acquire().wait_forever().await.expect("a lease");
            let before = served.fetch_add(1, Ordering::Relaxed);
            assert_eq!(before, n, "out of order");
            guard.release().await.expect("held to the end");
        }));
    };
    // The first makes the connections, and the place.
    spawn(0);
    wait::until("it waits", || locks.footprint().waiting == 1).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let before = resident();
    (1..TASKS).for_each(spawn);
    wait::until("all wait", || locks.footprint().waiting == TASKS).await;
    println!("bytes {}", (resident() - before) / (TASKS as u64 - 1));
    wait::until("all are served", || served.load(Ordering::Relaxed) == TASKS).await;
    println!("served {TASKS} in order");
}

/// Waits for many names.
async fn names() {
    let locks = connect().await;
    for n in 0..NAMES {
        let lock = locks.lock(format!("name/{n}")).expect("a name");
        drop(tokio::spawn(lock.acquire().wait_forever()));
    }
    wait::until("all wait", || locks.footprint().waiting == NAMES).await;
    println!("waiting");
    std::future::pending::<()>().await;
}
