//! P7 and P8 on a real server whose subscriptions are killed again and again, while processes hand
//! a lock over to each other: nothing is lost, and nobody is stuck.
#![expect(clippy::disallowed_methods, reason = "processes take real time")]

use std::{env, thread, time::Duration};

use leasehold::{
    ReentrantLock,
    time::{Clock, Instant, SystemClock},
};
use leasehold_testkit::{Event, History, RedisServer, history::Worker};
use redis::{Script, aio::MultiplexedConnection};

use crate::support::{child, events, patient, raw};

const PROCESSES: usize = 4;
/// How often the lock changes hands; more for a long run.
const HANDOVERS: &str = "LEASEHOLD_HANDOVERS";
const KILL_EVERY: Duration = Duration::from_millis(100);
/// How many subscriptions are killed at least, however fast the machine is.
const KILLS: usize = 5 * PROCESSES;
/// Far more than a lost message costs: a heartbeat comes every 750 ms.
const STUCK: Duration = Duration::from_secs(10);

/// Writes without a gate what was read and one more, and tells the storage's own order.
const WRITE: &str = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[2])";

fn handovers() -> u64 {
    env::var(HANDOVERS).map_or(1_000, |number| number.parse().expect("a number"))
}

#[test]
fn nothing_is_lost_while_subscriptions_are_killed() {
    let (history, kills) = hand_over(true);
    let summary = history.check_strictly().expect("a correct lock");
    assert!(summary.increments >= handovers(), "{summary:?}");
    assert_eq!((summary.lost, summary.refused), (0, 0));
    let (changes, longest) = changes(&history);
    assert!(changes >= handovers() * 9 / 10, "{changes} changes of process");
    assert!(longest < STUCK, "nobody got the lock for {longest:?}");
    // Each of the processes lost its subscription again and again.
    assert!(kills >= KILLS, "{kills} kills");
    println!("{changes} hand-overs, {kills} subscriptions killed, longest pause {longest:?}");
}

/// The control: what the killed subscriptions cost is time.
#[test]
fn control_with_its_subscriptions_it_goes_on_without_pauses() {
    let (history, kills) = hand_over(false);
    history.check_strictly().expect("a correct lock");
    let (changes, longest) = changes(&history);
    assert!(changes >= handovers() * 9 / 10 && kills == 0, "{changes} changes");
    println!("{changes} hand-overs, no subscription killed, longest pause {longest:?}");
}

/// How often the lock went to another process, and the longest time without a write.
fn changes(history: &History) -> (u64, Duration) {
    let mut writes: Vec<(u64, Instant, _)> = history
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Wrote { order, at, lease, .. } => Some((order, at, lease.runtime())),
            _ => None,
        })
        .collect();
    writes.sort_by_key(|(order, ..)| *order);
    let pairs = || writes.windows(2);
    let changes = pairs().filter(|pair| pair[0].2 != pair[1].2).count();
    let pauses = pairs().map(|pair| pair[1].1.saturating_since(pair[0].1));
    (changes as u64, pauses.max().unwrap_or_default())
}

/// Lets processes increment one key in turn; what they saw, and how many subscriptions were killed.
fn hand_over(kill: bool) -> (History, usize) {
    let limit = Duration::from_secs(50) + Duration::from_millis(20 * handovers());
    let server = RedisServer::start();
    let (url, life) = (server.url(), limit.as_secs().to_string());
    let spawn = |index: usize| {
        let index = index.to_string();
        let args = [("url", &*url), ("index", &index), (child::LIFE_SECONDS, &life)];
        child::spawn(module_path!(), "hand-over", &args)
    };
    let mut children: Vec<_> = (0..PROCESSES).map(spawn).collect();
    for child in &mut children {
        child.wait_for_line("ready", limit);
    }
    server.command(&["SET", "go", "1"]);
    let counted = || server.query::<Option<u64>>(&["GET", "counter"]) >= Some(handovers());
    let (ends_at, mut kills) = (SystemClock.now() + limit, 0);
    while SystemClock.now() < ends_at && !(counted() && (kills >= KILLS || !kill)) {
        thread::sleep(KILL_EVERY);
        if kill {
            kills += server.query::<usize>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        }
    }
    server.command(&["SET", "stop", "1"]);
    for child in &mut children {
        child.wait_for_line("done", limit);
    }
    let value = server.query(&["GET", "counter"]);
    let told = children.iter().flat_map(|child| events::read(child.seen()));
    (told.chain([Event::CounterRead { value }]).collect(), kills)
}

#[test]
fn child_program() {
    if child::role().is_some() {
        child::run(take_turns());
    }
}

/// Takes the lock again and again, as the others do, until enough was counted.
async fn take_turns() {
    let (url, worker) = (child::arg("url"), child::arg("index").parse().expect("a number"));
    let storage = raw::connect(&url).await;
    let locks = patient::builder().connect(&url).await.expect("the server answers");
    let lock = locks.lock("counter").expect("a name");
    println!("ready");
    let mut counter = Counter { worker, lock, storage };
    while counter.read("go").await == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    while counter.read("stop").await == 0 {
        counter.increment().await;
    }
    println!("done");
}

struct Counter {
    worker: Worker,
    lock: ReentrantLock,
    storage: MultiplexedConnection,
}

impl Counter {
    /// Counts one more under the lock.
    async fn increment(&mut self) {
        let (worker, asked_at) = (self.worker, SystemClock.now());
        let guard = self.lock.acquire().wait_forever().await.expect("a lease");
        let (lease, fence, granted_at) = (guard.id(), guard.fence(), SystemClock.now());
        let value = self.read("counter").await;
        events::tell(Event::Asked { worker, at: asked_at });
        events::tell(Event::Granted { worker, fence, lease, asked_at, granted_at });
        let until = granted_at + guard.remaining();
        events::tell(Event::BelievedUntil { lease, until });
        let at = SystemClock.now();
        let order = self.write(value + 1).await;
        events::tell(Event::Wrote { fence, lease, at, order, accepted: true });
        events::tell(Event::Incremented { worker });
        events::tell(Event::Released { lease, at: SystemClock.now() });
        guard.release().await.expect("held to the end");
    }

    async fn read(&mut self, key: &str) -> u64 {
        let read = redis::cmd("GET").arg(key).query_async::<Option<u64>>(&mut self.storage).await;
        read.expect("an answer").unwrap_or_default()
    }

    async fn write(&mut self, value: u64) -> u64 {
        let script = Script::new(WRITE);
        let mut call = script.key("counter");
        let call = call.key("order").arg(value);
        call.invoke_async(&mut self.storage).await.expect("an answer")
    }
}
