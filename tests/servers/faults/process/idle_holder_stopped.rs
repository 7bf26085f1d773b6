use std::{thread, time::Duration};

use leasehold::{
    Guard,
    fencing::GateError,
    time::{Clock, SystemClock},
};
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::{ChildProcess, Event, History, RedisServer, Violation};
use redis::Client;

use super::scene;
use crate::support::{child, events, idle, matrix::row, storage, wait};

row! {
    idle_holder_stopped: protected, control;
    fault: "a process is stopped (SIGSTOP) past its ttl while it keeps the lock idle",
    right: "awake, it waits for its turn and gets a newer fence; its stale write is refused",
    control: "an idle lock that is taken without a look at the clock, and no gate",
}

pub(super) const ROLE: &str = "keeps-idle";
const TTL: Duration = Duration::from_secs(3);
const VALUE: &str = "{v}";
/// What the child does without a look at the clock and without a gate.
const CREDULOUS: &str = "credulous";

/// A process that has stood still, and another one that has the lock.
struct Scene {
    // Before the server: the process ends first.
    child: ChildProcess,
    server: RedisServer,
    newer: Guard,
    history: History,
    /// By how many milliseconds the other one's lease came after the end of the child's.
    late: u64,
}

impl Scene {
    async fn start(mode: &str) -> Self {
        let server = RedisServer::start();
        let child = scene::idler(ROLE, &server, TTL, mode);
        child.stop();
        let ends_at = scene::ends_at(&server);
        // A lease that needs no renewal while this thread blocks.
        let others = scene::runtime_at(&server.url(), wait::CEILING * 4).await;
        let (history, asked_at) = (History::new(), SystemClock.now());
        let newer = scene::take(&others, "a").await;
        let (fence, lease, granted_at) = (newer.fence(), newer.id(), SystemClock.now());
        history.record(Event::Granted { worker: 1, fence, lease, asked_at, granted_at });
        let late = scene::late(&server, ends_at);
        Self { child, server, newer, history, late }
    }

    fn wake(&self) {
        scene::go(&self.server, ROLE);
        self.child.cont();
    }

    fn record_belief(&self) {
        let until = SystemClock.now() + self.newer.remaining();
        self.history.record(Event::BelievedUntil { lease: self.newer.id(), until });
    }
}

fn protected() -> String {
    wait::on_one_thread(async {
        let scene = Scene::start("").await;
        let gate = storage::gate_at(&scene.server.url());
        gate.set(VALUE, "new", scene.newer.stamp()).await.expect("the newest holder writes");
        scene.wake();
        // It asks the server, and does not take what it had.
        let length = || scene.server.query::<u64>(&["ZCARD", scene::QUEUE]);
        wait::until("it waits", || length() == 1).await;
        scene.record_belief();
        let Scene { mut child, server, newer, history, late } = scene;
        history.record(Event::Released { lease: newer.id(), at: SystemClock.now() });
        newer.release().await.expect("held to the end");
        child.wait_for_line("done", wait::CEILING);
        events::read(child.seen()).for_each(|event| history.record(event));
        let summary = history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
        assert_eq!((summary.leases, summary.released), (2, 2), "{summary:?}");
        assert_eq!(server.query::<String>(&["GET", VALUE]), "next");
        wait::block_until("all is free", || crate::support::lease::in_use(&server).is_empty());
        format!(
            "others had it {late} ms after its ttl; its next fence is newer; 1 stale write refused"
        )
    })
}

fn control() -> String {
    wait::on_one_thread(async {
        let mut scene = Scene::start(CREDULOUS).await;
        scene.server.command(&["SET", VALUE, "new"]);
        scene.wake();
        scene.child.wait_for_line("done", wait::CEILING);
        scene.record_belief();
        assert!(scene.newer.is_held(), "nobody else has the lock");
        assert_eq!(scene.server.query::<String>(&["GET", VALUE]), "stale");
        events::read(scene.child.seen()).for_each(|event| scene.history.record(event));
        let found = scene.history.check_strictly().expect_err("the control came to no harm");
        let fell = |violation: &Violation| matches!(violation, Violation::TokenFell { .. });
        assert!(found.iter().any(fell), "{found:#?}");
        "taken beside its new holder, with an older fence; 1 stale write accepted".into()
    })
}

/// The child: keeps the lock idle, and takes it again when it is told to.
pub(super) async fn keep_idle() {
    let credulous = child::arg("mode") == CREDULOUS;
    let mut rules = Rules::default();
    if credulous {
        rules.is_believed = |_, _| true;
    }
    let (url, ttl) = (child::arg("url"), scene::ttl());
    let builder = idle::builder(ttl, idle::longest(ttl)).seam(rules);
    let locks = builder.connect(&url).await.expect("the server answers");
    let gate = storage::gate_at(&url);
    let last = idle::make_idle(&locks, "a").await;
    println!("idle");
    until_go(&url);
    let asked_at = SystemClock.now();
    let guard = scene::take(&locks, "a").await;
    events::tell_granted(2, &guard, asked_at);
    if credulous {
        let mut raw = Client::open(url).expect("an address").get_connection().expect("a server");
        redis::cmd("SET").arg(VALUE).arg("stale").exec(&mut raw).expect("an answer");
    } else {
        let stale = gate.set(VALUE, "stale", last).await;
        assert!(matches!(stale, Err(GateError::Stale(_))), "{stale:?}");
        gate.set(VALUE, "next", guard.stamp()).await.expect("the newest holder writes");
    }
    events::release(guard).await;
    let _ = locks.shutdown(wait::CEILING).await;
    println!("done");
}

/// Blocks the only thread until it is told to go on: no timer comes between the end of the stop and
/// the next acquire.
fn until_go(url: &str) {
    let (client, key) = (Client::open(url).expect("an address"), child::arg("go"));
    let mut raw = client.get_connection().expect("the server answers");
    while !redis::cmd("EXISTS").arg(&key).query::<bool>(&mut raw).expect("an answer") {
        thread::sleep(Duration::from_millis(2));
    }
}
