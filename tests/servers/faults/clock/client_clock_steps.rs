use std::time::{Duration, SystemTime};

use leasehold_testkit::{ChildProcess, ClockShim, LockText, RedisServer};
use redis::aio::MultiplexedConnection;

use super::scene;
use crate::support::{child, lease, matrix::row, naive::NaiveLock, raw, wait};

row! {
    client_clock_steps: protected, control;
    fault: "a holder's wall clock steps by an hour, forward and back",
    right: "nothing happens: the same lease is renewed as before",
    control: "a validity that is measured by the time of day",
}

pub(super) const ROLE: &str = "steps";
pub(super) const NAIVE_ROLE: &str = "naive-steps";
const TTL: Duration = Duration::from_secs(1);
/// The key by which the child is asked.
const ASK: &str = "ask";

/// A child whose clock steps.
struct Scene {
    // Before the server: the process ends first.
    child: ChildProcess,
    server: RedisServer,
    shim: ClockShim,
}

impl Scene {
    fn start(role: &str) -> Self {
        let shim = ClockShim::build();
        let server = RedisServer::start();
        let mut child = scene::spawn(&shim, role, &server);
        child.wait_for_line("held", wait::CEILING);
        Self { child, server, shim }
    }

    /// Whether the child believes, and what time it thinks it is, in seconds.
    fn ask(&mut self) -> (bool, u64) {
        self.server.command(&["SET", ASK, "1"]);
        let answer = self.child.wait_for_line("believes ", wait::CEILING);
        let (believes, time) = answer.split_once(" at ").expect("an answer");
        (believes.parse().expect("yes or no"), time.parse().expect("a time"))
    }

    /// After more than a ttl the child holds the same lease; how often it was renewed meanwhile, at
    /// least.
    fn assert_renewed_on(&mut self, row: &LockText) -> u32 {
        let begun_at = scene::time(&self.server);
        let (mut renewed, mut before) = (0, Duration::MAX);
        wait::block_until("more than a ttl passes", || {
            let left = lease::left(&self.server, scene::LEASE).expect("it is held");
            renewed += u32::from(left > before);
            before = left;
            scene::time(&self.server) > begun_at + TTL * 3 / 2
        });
        assert_eq!(&lease::row(&self.server, scene::LEASE), row);
        assert!(self.ask().0, "it does not believe any more");
        renewed
    }
}

fn protected() -> String {
    let mut scene = Scene::start(ROLE);
    let row = lease::row(&scene.server, scene::LEASE);
    let (_, before) = scene.ask();
    scene.shim.forward(scene::HOUR);
    assert!(scene.ask().1 >= before + 3_600, "the clock did not step");
    let mut renewed = scene.assert_renewed_on(&row);
    scene.shim.back(scene::HOUR * 2);
    assert!(scene.ask().1 < before, "the clock did not step");
    renewed += scene.assert_renewed_on(&row);
    scene.server.command(&["SET", ASK, "end"]);
    assert_eq!(scene.child.wait_for_line("released ", wait::CEILING), "Ok(Ended)");
    scene::assert_clean(&scene.server);
    format!("the same lease three ttl later, renewed at least {renewed} times")
}

/// The child: holds the lock, and answers.
pub(super) async fn hold() {
    let url = child::arg("url");
    let locks = scene::runtime_at(&url, TTL).await;
    let (guard, mut raw) = (scene::take(&locks).await, raw::connect(&url).await);
    println!("held");
    while asked(&mut raw).await != "end" {
        println!("believes {} at {}", guard.is_held(), unix_time().as_secs());
    }
    println!("released {:?}", guard.release().await);
}

/// Waits for a question.
async fn asked(raw: &mut MultiplexedConnection) -> String {
    loop {
        let question = redis::cmd("GETDEL").arg(ASK).query_async::<Option<String>>(raw).await;
        if let Some(question) = question.expect("an answer") {
            return question;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970")
}

fn control() -> String {
    // Forward: a holder that stops to believe at once.
    let mut scene = Scene::start(NAIVE_ROLE);
    scene.shim.forward(scene::HOUR);
    assert!(!scene.ask().0, "the control believes on");
    drop(scene);

    // Back: a holder that believes on when another holds the lock.
    let mut scene = Scene::start(NAIVE_ROLE);
    scene.shim.back(scene::HOUR);
    wait::on_one_thread(async {
        let mut lock = NaiveLock::new(raw::connect(&scene.server.url()).await, "a", wait::CEILING);
        while lock.try_acquire().await.expect("an answer").is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(scene.ask().0, "the control noticed");
    "after + 1 h no belief; after − 1 h two believers".into()
}

/// The control's child: counts the validity of its lease by the time of day.
pub(super) async fn hold_naively() {
    let mut raw = raw::connect(&child::arg("url")).await;
    let mut lock = NaiveLock::new(raw.clone(), "a", TTL);
    lock.try_acquire().await.expect("an answer").expect("a free lock");
    let until = unix_time() + TTL;
    println!("held");
    while asked(&mut raw).await != "end" {
        println!("believes {} at {}", unix_time() < until, unix_time().as_secs());
    }
}
