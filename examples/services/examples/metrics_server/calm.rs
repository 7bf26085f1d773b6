use std::{process::ExitCode, time::Duration};

use leasehold::{LockRuntime, ReentrantLock};
use leasehold_services::{Failure, Outcome, Place, SHUTDOWN};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::NAMESPACE;

/// How long orders and reports hold their locks; reports are renewed, and wait for each other.
const ORDER: Duration = Duration::from_millis(5);
const REPORT: Duration = Duration::from_secs(2);

/// A healthy service: its locks are contended, by tasks of this process and by other processes
/// that run the same, and nothing goes wrong. All times are the defaults.
pub(crate) async fn run(place: &Place, end: Instant) -> Result<ExitCode, Failure> {
    let builder = LockRuntime::builder().namespace(NAMESPACE).service("metrics");
    let locks = place.open(builder).await?;
    let mut tasks = JoinSet::new();
    for task in 0..6 {
        let lock = locks.lock(format!("order/{}", task % 3))?.class("orders");
        tasks.spawn(work(lock, ORDER, end));
    }
    tasks.spawn(work(locks.lock("report")?.class("reports"), REPORT, end));
    let failed: u64 = tasks.join_all().await.into_iter().sum();
    let left = locks.shutdown(SHUTDOWN).await.held;
    Ok(Outcome::new()
        .fact("calls that failed", failed)
        .holds("no call failed", failed == 0)
        .holds("nothing is held at the end", left == 0)
        .print())
}

/// Takes a lock again and again; returns how often that failed.
async fn work(lock: ReentrantLock, hold: Duration, end: Instant) -> u64 {
    let mut failed = 0;
    while Instant::now() < end {
        match lock.acquire().await {
            Ok(guard) => {
                sleep(hold).await;
                failed += u64::from(guard.release().await.is_err());
            }
            Err(_) => failed += 1,
        }
        sleep(hold / 2).await;
    }
    failed
}
