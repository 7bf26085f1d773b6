use std::{
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold_testkit::ChildProcess;

use super::net::Net;
use crate::support::{child, matrix::row, patient, wait};

row! {
    reconnect_storm: protected, control;
    fault: "all connections of over 1,000 waiters are reset; for a while none is accepted",
    right: "a runtime connects once for all its tasks, with pauses; all are served afterwards",
    control: "a connection for every waiter",
}

const ROLE: &str = "storm";
/// How many tasks wait in each process.
const CROWDS: [usize; 3] = [1_000, 100, 100];
/// Commands on two, renewals, and the subscription.
const CONNECTIONS: u64 = 4;
/// How long no connection is taken.
const OUTAGE: Duration = Duration::from_secs(1);
/// At the least between two dials of one connection.
const PAUSE: Duration = Duration::from_millis(50);

fn protected() -> String {
    let net = Net::start();
    wait::on_one_thread(async {
        let locks = patient::builder().connect(&net.server.url()).await.expect("a server");
        let lock = locks.lock("a").expect("a name");
        // Longer than the test: what expires does not help the waiters.
        let holding = lock.acquire().ttl(Duration::from_secs(120)).renew(false);
        let guard = holding.await.expect("a lease");
        let mut crowds = crowds(&net);
        let dials = outage(&net);
        guard.release().await.expect("held to the end");
        let served: usize = crowds.iter_mut().map(served).sum();
        assert_eq!(served, CROWDS.iter().sum::<usize>());
        net.is_clean_soon();
        format!("{dials} attempts to connect in {OUTAGE:?}; all {served} waiters served")
    })
}

fn crowds(net: &Net) -> Vec<ChildProcess> {
    let spawn = |tasks: &usize| {
        child::spawn(module_path!(), ROLE, &[("url", &net.url()), ("tasks", &tasks.to_string())])
    };
    let mut crowds: Vec<_> = CROWDS.iter().map(spawn).collect();
    for crowd in &mut crowds {
        crowd.wait_for_line("waiting", wait::CEILING);
    }
    crowds
}

fn served(crowd: &mut ChildProcess) -> usize {
    crowd.wait_for_line("served ", wait::CEILING).parse().expect("a number")
}

/// Breaks all connections and takes none for a while; how often was dialled in all.
fn outage(net: &Net) -> u64 {
    let runtimes = CROWDS.len() as u64;
    let (before, began_at) = (net.proxy.counts(), net.server.micros());
    net.proxy.refuse();
    let broken = net.proxy.reset_all() as u64;
    assert!(broken >= 2 * runtimes, "{broken} connections");
    wait::block_until("the outage is over", || {
        let long = net.server.micros() > began_at + micros(OUTAGE);
        long && net.proxy.counts().refused >= 2 * runtimes
    });
    net.proxy.accept();
    wait::block_until("all hear the server again", || net.subscribers() >= CROWDS.len());
    let (after, took) = (net.proxy.counts(), net.server.micros() - began_at);
    let refused = after.refused - before.refused;
    let accepted = after.accepted - before.accepted;
    let at_most = runtimes * CONNECTIONS * (took / micros(PAUSE) + 10);
    assert!(refused <= at_most, "{refused} dials, not {at_most}");
    assert!(accepted <= 2 * runtimes * CONNECTIONS, "{accepted} connections");
    refused + accepted
}

fn control() -> String {
    let net = Net::start();
    net.proxy.refuse();
    for _ in 0..CROWDS[0] {
        // Each of the waiters for itself, and each but once; the reset may come at once.
        drop(TcpStream::connect(("127.0.0.1", net.proxy.port())));
    }
    let dials = || net.proxy.counts().refused;
    wait::block_until("all have dialled", || dials() >= 1_000);
    let dials = dials();
    format!("{dials} attempts, one for each")
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).expect("a short time")
}

#[test]
fn child_program() {
    if child::role().as_deref() == Some(ROLE) {
        child::run(crowd());
    }
}

async fn crowd() {
    let (url, tasks) = (child::arg("url"), child::arg("tasks").parse().expect("a number"));
    let builder = patient::builder().claim_window(Duration::from_secs(1));
    let locks = builder.connect(&url).await.expect("the server answers");
    let served = Arc::new(AtomicUsize::new(0));
    for _ in 0..tasks {
        let (lock, served) = (locks.lock("a").expect("a name"), Arc::clone(&served));
        tokio::spawn(async move {
            let guard = lock.acquire().wait_forever().await.expect("a lease");
            guard.release().await.expect("held to the end");
            served.fetch_add(1, Ordering::Relaxed);
        });
    }
    wait::until("all wait", || locks.footprint().waiting == tasks).await;
    println!("waiting");
    wait::until("all are served", || served.load(Ordering::Relaxed) == tasks).await;
    println!("served {tasks}");
    assert_eq!(locks.shutdown(wait::CEILING).await.held, 0);
}
