use std::time::Duration;

use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::cancel;
use crate::support::{child, matrix::row, naive::NaiveLock, raw, wait};

row! {
    acquire_cancelled: protected, control;
    fault: "acquires of a contended lock are cancelled after 0 to 8 ms, in three processes",
    right: "no lease and no place is left: the lock is free long before its ttl",
    control: "a naive acquire that is cancelled before its answer",
}

pub(super) const ROLE: &str = "cancels";
/// Far longer than this row takes: what expires by itself does not help it.
const TTL: Duration = Duration::from_secs(600);
const PROCESSES: usize = 3;
const ROUNDS: u64 = 160;
/// Now and then a process waits for as long as it takes.
const PATIENCE: Duration = Duration::from_secs(5);

fn protected() -> String {
    let server = RedisServer::start();
    let mut children: Vec<_> =
        (0..PROCESSES).map(|_| scene::spawn(ROLE, &server, TTL, "")).collect();
    for child in &mut children {
        child.wait_for_line("ready", wait::CEILING);
    }
    scene::go(&server, ROLE);
    let (mut acquired, mut cancelled) = (0, 0);
    for child in &mut children {
        acquired +=
            child.wait_for_line("acquired ", wait::CEILING).parse::<u32>().expect("a number");
        cancelled +=
            child.wait_for_line("cancelled ", wait::CEILING).parse::<u32>().expect("a number");
    }
    assert!(acquired > 0 && cancelled > 0, "{acquired} acquired, {cancelled} cancelled");
    // The children still live: nobody's end has released anything, and no ttl has run out.
    wait::on_one_thread(async {
        let locks = scene::runtime_at(&server.url(), TTL).await;
        let guard = scene::take(&locks, "a").await;
        guard.release().await.expect("a lease that was held to the end");
        let report = locks.shutdown(wait::CEILING).await;
        assert_eq!((report.held, report.unreleased), (0, Vec::new()));
    });
    scene::assert_clean(&server);
    format!("{cancelled} cancelled, {acquired} in time; free soon, ttl {TTL:?}")
}

/// The child: acquires the lock again and again, with more and more patience.
pub(super) async fn cancel() {
    let builder = scene::builder(scene::ttl()).claim_window(Duration::from_millis(300));
    let url = child::arg("url");
    let locks = builder.connect(&url).await.expect("the server answers");
    let (lock, mut raw) = (locks.lock("a").expect("a name"), raw::connect(&url).await);
    println!("ready");
    scene::until_go(&mut raw).await;
    let (mut acquired, mut cancelled) = (0, 0);
    for round in 0..ROUNDS {
        let delay = if round % 20 == 0 { PATIENCE } else { Duration::from_micros(round * 50) };
        match cancel::after(delay, lock.acquire()).await {
            Some(guard) => {
                guard.expect("a lease").release().await.expect("held to the end");
                acquired += 1;
            }
            None => cancelled += 1,
        }
    }
    println!("acquired {acquired}\ncancelled {cancelled}");
    std::future::pending::<()>().await;
}

fn control() -> String {
    let server = RedisServer::start();
    wait::on_one_thread(async {
        let mut lock = NaiveLock::new(raw::connect(&server.url()).await, "a", TTL);
        // The server learns the script.
        let held = lock.try_acquire().await.expect("an answer").expect("a free lock");
        lock.release(&held).await.expect("an answer");
        server.stop_signal();
        let cancelled = cancel::after(Duration::from_millis(20), lock.try_acquire()).await;
        assert!(cancelled.is_none(), "a server that stands still has answered");
        server.cont_signal();
        wait::until("the command is executed", || server.query(&["EXISTS", &lock.key()])).await;
        let other = lock.try_acquire().await.expect("an answer");
        assert!(other.is_none(), "the control left the lock free");
        let left: u64 = server.query(&["PTTL", &lock.key()]);
        format!("taken by nobody for another {} s", left.div_ceil(1_000))
    })
}
