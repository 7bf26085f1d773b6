use std::{os::unix::process::ExitStatusExt, process, time::Duration};

use leasehold_testkit::{ChildProcess, RedisServer};

use super::scene;
use crate::support::{child, matrix::row, raw, wait};

row! {
    process_aborts: protected, control;
    fault: "a holder's process aborts in its section, as a panic does with panic = abort",
    right: "its ttl frees the lock",
    control: "a lock without a ttl",
}

pub(super) const ROLE: &str = "aborts";
pub(super) const NAIVE_ROLE: &str = "naive-aborts";
const TTL: Duration = Duration::from_millis(1_500);
pub(super) const LOCK: &str = "naive";

fn protected() -> String {
    let server = RedisServer::start();
    let holder = scene::holder(ROLE, &server, TTL, "");
    let mut waiter = scene::waiter(&server, TTL, 0);
    abort(&server, ROLE, &holder);
    let ends_at = scene::ends_at(&server);
    waiter.wait_for_line("granted at ", wait::CEILING);
    let late = scene::late(&server, ends_at);
    scene::go(&server, scene::WAITER);
    assert_eq!(waiter.wait_for_line("released ", wait::CEILING), "Ok(Ended)");
    scene::assert_clean(&server);
    format!("granted {late} ms after the lease ran out")
}

fn control() -> String {
    let server = RedisServer::start();
    let holder = scene::holder(NAIVE_ROLE, &server, TTL, "");
    abort(&server, NAIVE_ROLE, &holder);
    scene::until_passed(&server, server.micros(), TTL);
    assert_eq!(server.query::<i64>(&["PTTL", LOCK]), -1, "the control let go");
    "taken for ever".into()
}

/// Tells a process to abort, and waits until it has.
fn abort(server: &RedisServer, role: &str, holder: &ChildProcess) {
    scene::go(server, role);
    let status = holder.wait_for_exit(wait::CEILING).expect("it aborts");
    assert_eq!(status.signal(), Some(6), "{status}");
}

/// The child: aborts when it is told to.
pub(super) async fn abort_holding() {
    let mut holding = scene::hold(scene::builder(scene::ttl())).await;
    scene::until_go(&mut holding.raw).await;
    process::abort();
}

/// The control's child.
pub(super) async fn abort_naively() {
    let mut raw = raw::connect(&child::arg("url")).await;
    let taken = redis::cmd("SETNX").arg(LOCK).arg("me").query_async(&mut raw).await;
    assert_eq!(taken, Ok(true));
    println!("held naively");
    scene::until_go(&mut raw).await;
    process::abort();
}
