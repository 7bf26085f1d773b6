use std::{mem, panic, time::Duration};

use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{child, lease, matrix::row, wait};

row! {
    panic_in_section: protected, control;
    fault: "a task panics while it holds the lock; its process lives on",
    right: "unwinding drops the guard, which releases at once, long before the ttl",
    control: "a guard that unwinding does not drop (mem::forget)",
}

pub(super) const ROLE: &str = "panics";
/// Far longer than this row takes.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(1);

fn protected() -> String {
    let server = RedisServer::start();
    let mut holder = scene::holder(ROLE, &server, LONG, "drop");
    let mut waiter = scene::waiter(&server, LONG, 0);
    let (ends_at, asked_at) = (scene::ends_at(&server), server.micros());
    for role in [ROLE, scene::WAITER] {
        scene::go(&server, role);
    }
    holder.wait_for_line("unwound", wait::CEILING);
    let granted_at: u64 =
        waiter.wait_for_line("granted at ", wait::CEILING).parse().expect("a time");
    assert!(granted_at < ends_at, "{} µs after the ttl", granted_at - ends_at);
    assert_eq!(waiter.wait_for_line("released ", wait::CEILING), "Ok(Ended)");
    scene::assert_clean(&server);
    format!("the waiter has it {} ms later; ttl {LONG:?}", (granted_at - asked_at) / 1_000)
}

fn control() -> String {
    let server = RedisServer::start();
    let mut holder = scene::holder(ROLE, &server, SHORT, "forget");
    let row = lease::row(&server, scene::LEASE);
    let ends_at = scene::ends_at(&server);
    scene::go(&server, ROLE);
    holder.wait_for_line("unwound", wait::CEILING);
    scene::until_passed(&server, ends_at, SHORT);
    assert!(lease::is_held(&server, scene::LEASE), "the control let go");
    assert_eq!(lease::row(&server, scene::LEASE), row, "the control let go");
    "still taken two ttl later, and renewed".into()
}

/// The child: panics with the guard in its hands, and lives on.
pub(super) async fn panic_holding() {
    let mut holding = scene::hold(scene::builder(scene::ttl())).await;
    let forgets = child::arg("mode") == "forget";
    scene::until_go(&mut holding.raw).await;
    panic::set_hook(Box::new(|_| {}));
    let section = tokio::spawn(async move {
        let guard = holding.guard;
        if forgets {
            mem::forget(guard);
        }
        panic!("in the midst of a section");
    });
    assert!(section.await.is_err_and(|error| error.is_panic()));
    println!("unwound");
    std::future::pending::<()>().await;
}
