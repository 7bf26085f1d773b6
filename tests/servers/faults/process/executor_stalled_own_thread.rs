use std::{thread, time::Duration};

use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{child, matrix::row, wait};

row! {
    executor_stalled_own_thread: protected, control;
    fault: "blocking code stalls a holder's only thread past its ttl, while another waits",
    right: "a runtime with own_thread() goes on renewing: the lease survives",
    control: "renewals on the thread that is stalled",
}

pub(super) const ROLE: &str = "stalls";
const TTL: Duration = Duration::from_millis(1_500);
const STALL: Duration = Duration::from_millis(2_200);

fn protected() -> String {
    let seen = stall_a_holder("own");
    assert!(seen.held_after && seen.released.contains("Ok"), "{seen:?}");
    assert!(!seen.others_got_it, "{seen:?}");
    format!("held after {STALL:?} without a poll, ttl {TTL:?}")
}

fn control() -> String {
    let seen = stall_a_holder("shared");
    assert!(!seen.held_after && seen.others_got_it, "the control kept its lease: {seen:?}");
    "lost; another held the lock during the section".into()
}

#[derive(Debug)]
struct Seen {
    held_after: bool,
    /// Whether the waiter was granted the lock before the holder released it.
    others_got_it: bool,
    released: String,
}

fn stall_a_holder(mode: &str) -> Seen {
    let server = RedisServer::start();
    let mut holder = scene::holder(ROLE, &server, TTL, mode);
    let mut waiter = scene::waiter(&server, TTL, 0);
    holder.wait_for_line("stalls", wait::CEILING);
    let held_after = holder.wait_for_line("woke ", wait::CEILING) == "true";
    let woke_at = server.micros();
    // Only now: until then, the one that holds the lock keeps it.
    for role in [ROLE, scene::WAITER] {
        scene::go(&server, role);
    }
    waiter.wait_for_line("held ", wait::CEILING);
    let released = holder.wait_for_line("released ", wait::CEILING);
    let granted = waiter.wait_for_line("granted at ", wait::CEILING);
    let others_got_it = granted.parse::<u64>().expect("a time") < woke_at;
    waiter.read_to_end(wait::CEILING);
    scene::assert_clean(&server);
    Seen { held_after, others_got_it, released }
}

/// The child: blocks its thread while it holds the lock.
pub(super) async fn stall() {
    let builder = scene::builder(scene::ttl());
    let own = child::arg("mode") == "own";
    let mut holding = scene::hold(if own { builder.own_thread() } else { builder }).await;
    // The waiter has to be in the queue.
    while redis::cmd("ZCARD").arg(scene::QUEUE).query_async(&mut holding.raw).await != Ok(1) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    println!("stalls");
    thread::sleep(STALL);
    println!("woke {}", holding.guard.is_held());
    scene::until_go(&mut holding.raw).await;
    println!("released {:?}", holding.guard.release().await);
}
