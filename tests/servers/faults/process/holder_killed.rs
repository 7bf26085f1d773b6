use std::time::Duration;

use leasehold_testkit::RedisServer;
use redis::{Client, PubSub};

use super::scene;
use crate::support::{child, matrix::row, raw, wait};

row! {
    holder_killed: protected, control;
    fault: "a holder is killed (SIGKILL); nothing is published when its lease runs out",
    right: "the waiter asks again when the ttl ends, and gets the lock",
    control: "a waiter that only waits for a message",
}

pub(super) const ROLE: &str = "naive-holder";
const TTL: Duration = Duration::from_millis(1_500);
/// For how long the control's waiter is left waiting beside a free lock.
const IN_VAIN: Duration = Duration::from_millis(700);
/// The lock, and the channel, of the control.
const LOCK: &str = "naive";

fn protected() -> String {
    let server = RedisServer::start();
    let mut holder = scene::holder(scene::HOLDER, &server, TTL, "");
    let mut waiter = scene::waiter(&server, TTL, 0);
    holder.kill();
    let (ends_at, published) = (scene::ends_at(&server), server.calls("publish"));
    assert!(ends_at <= server.micros() + scene::micros(TTL));
    waiter.wait_for_line("granted at ", wait::CEILING);
    let late = scene::late(&server, ends_at);
    assert_eq!(server.calls("publish"), published, "somebody was told of it");
    scene::go(&server, scene::WAITER);
    assert_eq!(waiter.wait_for_line("released ", wait::CEILING), "Ok(Ended)");
    scene::assert_clean(&server);
    holder.read_to_end(wait::CEILING);
    format!("granted {late} ms after the lease ran out; 0 messages")
}

fn control() -> String {
    let server = RedisServer::start();
    let client = Client::open(server.url()).expect("an address");
    let mut connection = client.get_connection().expect("the server answers");
    let mut ear = connection.as_pubsub();
    ear.subscribe(LOCK).expect("an answer");
    // It does wake its waiter when a holder gives the lock back.
    let mut holder = scene::holder(ROLE, &server, TTL, "");
    scene::go(&server, ROLE);
    assert!(is_told(&mut ear, wait::CEILING), "the control's message works");
    holder.read_to_end(wait::CEILING);
    server.command(&["DEL", &format!("go:{ROLE}")]);

    let holder = scene::holder(ROLE, &server, TTL, "");
    holder.kill();
    wait::block_until("the lease ends", || !server.query::<bool>(&["EXISTS", LOCK]));
    assert!(!is_told(&mut ear, IN_VAIN), "the control was told");
    assert!(!server.query::<bool>(&["EXISTS", LOCK]), "the control's waiter took it");
    format!("the lock is free, and its waiter asleep {IN_VAIN:?} later")
}

fn is_told(ear: &mut PubSub<'_>, within: Duration) -> bool {
    ear.set_read_timeout(Some(within)).expect("a time above zero");
    ear.get_message().is_ok()
}

/// The control's child: takes the lock, gives it back when told to, and says so on its channel.
pub(super) async fn hold_naively() {
    let mut raw = raw::connect(&child::arg("url")).await;
    let mut taking = redis::cmd("SET");
    taking.arg(LOCK).arg("me").arg("NX").arg("PX").arg(child::arg("ttl"));
    assert!(taking.query_async::<bool>(&mut raw).await.expect("an answer"), "it is free");
    println!("held naively");
    scene::until_go(&mut raw).await;
    redis::cmd("DEL").arg(LOCK).exec_async(&mut raw).await.expect("an answer");
    redis::cmd("PUBLISH").arg(LOCK).arg("free").exec_async(&mut raw).await.expect("an answer");
}
