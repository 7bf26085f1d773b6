use std::time::Duration;

use leasehold_testkit::{LockText, RedisServer};

use super::{process_aborts, scene};
use crate::support::{matrix::row, wait};

row! {
    idle_holder_killed: protected, control;
    fault: "a process is killed (SIGKILL) while it keeps the lock idle",
    right: "others wait for the rest of its ttl; fences grow",
    control: "a lock without a ttl that its process keeps",
}

const TTL: Duration = Duration::from_secs(4);

fn protected() -> String {
    let server = RedisServer::start();
    let mut dead = scene::idler(scene::IDLER, &server, TTL, "");
    dead.kill();
    let (ends_at, killed_at) = (scene::ends_at(&server), server.micros());
    assert!(ends_at <= killed_at + scene::micros(TTL));
    let last = LockText::of(&server, scene::LEASE).last();
    let mut waiter = scene::spawn(scene::WAITER, &server, wait::CEILING, "");
    waiter.wait_for_line("granted at ", wait::CEILING);
    let late = scene::late(&server, ends_at);
    let fence = LockText::of(&server, scene::LEASE).lease().fence;
    assert!(fence > last, "{fence} after {last}");
    scene::go(&server, scene::WAITER);
    assert_eq!(waiter.wait_for_line("released ", wait::CEILING), "Ok(Ended)");
    scene::assert_clean(&server);
    dead.read_to_end(wait::CEILING);
    format!("granted {late} ms after the lease ran out, with a greater fence; ttl {TTL:?}")
}

fn control() -> String {
    let server = RedisServer::start();
    let holder = scene::holder(process_aborts::NAIVE_ROLE, &server, TTL, "");
    holder.kill();
    let killed_at = server.micros();
    scene::until_passed(&server, killed_at, TTL);
    assert_eq!(server.query::<i64>(&["PTTL", process_aborts::LOCK]), -1, "the control let go");
    "taken for ever".into()
}
