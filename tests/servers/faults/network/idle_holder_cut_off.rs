use std::time::Duration;

use leasehold::{
    Guard, ReentrantLock,
    error::AcquireError,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{Event, History, RedisServer, proxy::Direction};

use super::net::Net;
use crate::support::{idle, lease, matrix::row, naive::NaiveLock, patient, raw, wait};

row! {
    idle_holder_cut_off: protected, control;
    fault: "the network of a process is cut while it keeps the lock idle; another process waits",
    right: "it may take the lock until its lease ends, then no more; the other one has it after that",
    control: "a cached lock that is taken until a message recalls it",
}

const TTL: Duration = Duration::from_secs(3);
const LEASE: &str = "leasehold:{a}:lease";

fn protected() -> String {
    let net = Net::start();
    wait::on_one_thread(async {
        let soon = Duration::from_millis(300);
        let builder = idle::builder(TTL, idle::longest(TTL)).command_timeout(soon);
        let builder = builder.outage_patience(soon);
        let keeps = builder.connect(&net.url()).await.expect("the server answers");
        let others = patient::builder().connect(&net.server.url()).await;
        let others = others.expect("the server answers");
        idle::make_idle(&keeps, "a").await;

        net.proxy.black_hole(Direction::Both);
        let (_, ends_at) = lease::expiry(&net.server, LEASE).expect("it is held");
        let history = History::new();
        let other = async {
            let lock = others.lock("a").expect("a name");
            acquired(&history, 2, &lock).await.expect("a lease")
        };
        let lock = keeps.lock("a").expect("a name");
        let (newer, (uses, error)) = tokio::join!(other, use_until_refused(&history, &lock));
        // It had the lock without the server, and then no more.
        assert!(uses > 1, "{uses} uses");
        assert!(matches!(error, AcquireError::Unavailable(_)), "{error:?}");
        let granted_at = lease::granted_at(&net.server, LEASE);
        // The server keeps times to live in whole milliseconds.
        assert!(granted_at + 2_000 >= ends_at, "{} µs too early", ends_at - granted_at);
        let late = granted_at.saturating_sub(ends_at) / 1_000;
        released(&history, newer).await;

        net.proxy.heal();
        wait::until("it is reached again", || keeps.health().is_ready()).await;
        let again = wait::soon("a lease", acquired(&history, 1, &lock)).await.expect("a lease");
        released(&history, again).await;
        let summary = history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
        assert_eq!(summary.leases, uses + 2, "{summary:?}");
        for locks in [keeps, others] {
            let report = locks.shutdown(wait::CEILING).await;
            assert_eq!((report.held, report.unreleased), (0, Vec::new()));
        }
        net.is_clean_soon();
        format!("taken {uses} times, then unavailable; the other had it {late} ms after the lease")
    })
}

/// Takes and releases a lock until it cannot be had; how often, and why not.
async fn use_until_refused(history: &History, lock: &ReentrantLock) -> (usize, AcquireError) {
    let mut uses = 0;
    loop {
        match acquired(history, 1, lock).await {
            Ok(guard) => {
                wait::a_moment().await;
                released(history, guard).await;
            }
            Err(error) => return (uses, error),
        }
        uses += 1;
    }
}

async fn acquired(
    history: &History,
    worker: u64,
    lock: &ReentrantLock,
) -> Result<Guard, AcquireError> {
    let asked_at = SystemClock.now();
    history.record(Event::Asked { worker, at: asked_at });
    let outcome = lock.acquire().wait(wait::CEILING).await;
    let at = SystemClock.now();
    match &outcome {
        Ok(guard) => {
            let (fence, lease, until) = (guard.fence(), guard.id(), at + guard.remaining());
            history.record(Event::Granted { worker, fence, lease, asked_at, granted_at: at });
            history.record(Event::BelievedUntil { lease, until });
        }
        Err(_) => history.record(Event::GaveUp { worker, at }),
    }
    outcome
}

/// The last one's release is not answered: its belief has ended nevertheless.
async fn released(history: &History, guard: Guard) {
    let (lease, at) = (guard.id(), SystemClock.now());
    let is_held = guard.is_held();
    history.record(if is_held { Event::Released { lease, at } } else { Event::Lost { lease, at } });
    drop(guard.release().await);
}

fn control() -> String {
    const TTL: Duration = Duration::from_millis(600);
    const VALUE: &str = "value";
    let (net, storage) = (Net::start(), RedisServer::start());
    wait::on_one_thread(async {
        let mut cached = NaiveLock::new(raw::connect(&net.url()).await, "a", TTL);
        let mut other = NaiveLock::new(raw::connect(&net.server.url()).await, "a", TTL);
        let held = cached.try_acquire().await.expect("an answer").expect("a free lock");
        net.proxy.black_hole(Direction::Both);
        let cut_at = net.server.micros();
        let mut newer = None;
        while newer.is_none() {
            assert!(net.server.micros() < cut_at + 25_000_000, "the lease never ends");
            newer = other.try_acquire().await.expect("an answer");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        storage.command(&["SET", VALUE, "new"]);
        // Nothing has recalled the cached lock: it is used once more.
        assert!(newer.is_some_and(|newer| newer.fence > held.fence));
        storage.command(&["SET", VALUE, "late"]);
        assert_eq!(storage.query::<String>(&["GET", VALUE]), "late");
        net.proxy.heal();
    });
    wait::block_until("all connections end", || net.proxy.counts().open == 0);
    "two holders; the one that was cut off overwrote the other's value".into()
}
