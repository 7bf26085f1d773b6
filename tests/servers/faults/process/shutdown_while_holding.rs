use std::{process, time::Duration};

use leasehold_testkit::{ChildProcess, RedisServer};

use super::scene;
use crate::support::{child, lease, matrix::row, wait};

row! {
    shutdown_while_holding: protected, control;
    fault: "a process shuts its runtime down and exits with live guards of four locks",
    right: "the locks are released before the process ends, and the report says so",
    control: "an exit without shutdown",
}

pub(super) const ROLE: &str = "leaves";
/// Far longer than this row takes.
const TTL: Duration = Duration::from_secs(600);
const OTHERS: [&str; 3] = ["b", "c", "d"];

fn protected() -> String {
    let server = RedisServer::start();
    let waiter = shut_down(&server);
    assert_eq!(taken(&server), 1, "by the waiter");
    scene::go(&server, scene::WAITER);
    let status = waiter.wait_for_exit(wait::CEILING).expect("it ends");
    assert!(status.success(), "{status}");
    scene::assert_clean(&server);
    "4 leases released before the exit; the waiter served at once".into()
}

fn control() -> String {
    let server = RedisServer::start();
    let mut child = scene::holder(ROLE, &server, TTL, "exit");
    scene::go(&server, ROLE);
    child.read_to_end(wait::CEILING);
    let taken = taken(&server);
    assert_eq!(taken, 4, "the control released something");
    let left = (scene::ends_at(&server) - server.micros()) / 1_000_000;
    format!("{taken} locks stay taken for another {left} s")
}

/// A process that holds four locks shuts down and ends; the one that waited for the first has it.
fn shut_down(server: &RedisServer) -> ChildProcess {
    let mut child = scene::holder(ROLE, server, TTL, "shutdown");
    let mut waiter = scene::waiter(server, TTL, 0);
    scene::go(server, ROLE);
    assert_eq!(child.wait_for_line("report ", wait::CEILING), "4 held, [] unreleased");
    let status = child.wait_for_exit(wait::CEILING).expect("it ends");
    assert!(status.success(), "{status}");
    waiter.wait_for_line("granted at ", wait::CEILING);
    waiter
}

/// How many leases the server has.
fn taken(server: &RedisServer) -> usize {
    lease::held(server).len()
}

/// The child: holds four locks, and exits with live guards.
pub(super) async fn leave_holding() {
    let mut holding = scene::hold(scene::builder(scene::ttl())).await;
    let mut guards = Vec::new();
    for name in OTHERS {
        guards.push(scene::take(&holding.locks, name).await);
    }
    scene::until_go(&mut holding.raw).await;
    if child::arg("mode") == "shutdown" {
        let report = holding.locks.shutdown(wait::CEILING).await;
        println!("report {} held, {:?} unreleased", report.held, report.unreleased);
    }
    // Drops nothing.
    process::exit(0);
}
