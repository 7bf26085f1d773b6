use std::time::Duration;

use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{child, matrix::row, raw, wait};

row! {
    waiter_killed: protected, control;
    fault: "the waiter at the head of the queue is killed (SIGKILL)",
    right: "it delays the others by at most its claim window",
    control: "a list as the queue, which does not know who is alive",
}

pub(super) const ROLE: &str = "naive-waiter";
/// Far longer than this row takes: one that waited for a ttl would not be served.
const TTL: Duration = Duration::from_secs(60);
const CLAIM_WINDOW: Duration = Duration::from_secs(1);
/// The control's queue and lock.
const LINE: &str = "line";
const LOCK: &str = "naive";
const PASS_ON: &str = "\
local next = redis.call('LPOP', KEYS[1])
if next then redis.call('SET', KEYS[2], next) else redis.call('DEL', KEYS[2]) end
return next";

fn protected() -> String {
    let server = RedisServer::start();
    let holder = scene::holder(scene::HOLDER, &server, TTL, "");
    let dead = scene::waiter(&server, TTL, 0);
    let mut next = scene::waiter(&server, TTL, 1);
    let head = server.query::<Vec<String>>(&["ZRANGE", scene::QUEUE, "0", "0"]).remove(0);
    dead.kill();
    let killed_at = server.micros();
    for role in [scene::HOLDER, scene::WAITER] {
        scene::go(&server, role);
    }
    let granted_at = next.wait_for_line("granted at ", wait::CEILING);
    let granted_at: u64 = granted_at.parse().expect("a time");
    assert_eq!(next.wait_for_line("released ", wait::CEILING), "Ok(Ended)");
    let delay = granted_at - killed_at;
    let waited = Duration::from_micros(delay);
    // It was the dead one's turn, or its place was kept until it was known to be dead.
    assert!(CLAIM_WINDOW / 4 < waited && waited < TTL / 2, "{waited:?}");
    assert!(!server.query::<Vec<String>>(&["ZRANGE", scene::QUEUE, "0", "-1"]).contains(&head));
    wait::block_until("the holder's process ends", || {
        holder.wait_for_exit(Duration::ZERO).is_some()
    });
    scene::assert_clean(&server);
    format!("the next one is served {} ms after the kill; ttl {TTL:?}", delay / 1_000)
}

fn control() -> String {
    let server = RedisServer::start();
    server.command(&["SET", LOCK, "holder"]);
    let mut waiters = ["dead", "live"].map(|name| {
        let mut child = scene::spawn(ROLE, &server, TTL, name);
        child.wait_for_line("queued", wait::CEILING);
        child
    });
    waiters[0].kill();
    let released_at = server.micros();
    server.command(&["EVAL", PASS_ON, "2", LINE, LOCK]);
    scene::until_passed(&server, released_at, CLAIM_WINDOW);
    assert_eq!(server.query::<String>(&["GET", LOCK]), "dead", "the control passed it on");
    assert_eq!(server.query::<i64>(&["PTTL", LOCK]), -1);
    scene::go(&server, ROLE);
    waiters[1].read_to_end(wait::CEILING);
    assert!(!waiters[1].seen().iter().any(|line| line == "granted"), "the control was served");
    "the dead waiter has the lock, for ever".into()
}

/// The control's child: queues, and waits until the lock is its own.
pub(super) async fn wait_naively() {
    let (me, mut raw) = (child::arg("mode"), raw::connect(&child::arg("url")).await);
    redis::cmd("RPUSH").arg(LINE).arg(&me).exec_async(&mut raw).await.expect("an answer");
    println!("queued");
    let served = async {
        let mut raw = raw.clone();
        while redis::cmd("GET").arg(LOCK).query_async::<String>(&mut raw).await != Ok(me.clone()) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let mut waits_no_more = raw.clone();
    tokio::select! {
        biased;
        () = served => println!("granted"),
        () = scene::until_go(&mut waits_no_more) => {}
    }
}
