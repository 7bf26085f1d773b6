//! P1 with holders that stand still in the midst of a write: one believer, and no lost increment.
//!
//! Processes increment one value; one after another is stopped between its read and its write,
//! until another has written. Behind a gate the counter loses nothing; without one it does.
#![expect(clippy::disallowed_methods, reason = "stopped processes take real time")]

use std::time::Duration;

use leasehold::{
    Guard, ReentrantLock,
    fencing::{FenceGate, GateError, RedisGate},
    time::{Clock, SystemClock},
};
use leasehold_testkit::{Event, History, Patience, RedisServer, Violation, history::Worker};
use redis::{Script, Value, aio::MultiplexedConnection};
use tokio::task::JoinSet;

use crate::support::{child, events, patient, raw, storage, wait};

const PROCESSES: usize = 3;
const TASKS: u64 = 3;
const TTL: Duration = Duration::from_secs(1);

const VALUE: &str = "{value}";
const ORDER: &str = "{value}:order";

/// Writes, and tells the storage's own order.
const WRITE: &str = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[2])";

#[test]
fn behind_a_gate_no_increment_is_lost() {
    let summary = contend("gated").check_strictly().expect("the storage refused what came late");
    assert!(summary.refused >= PROCESSES, "{summary:?}");
    assert!(summary.lost >= PROCESSES, "{summary:?}");
    assert_eq!(summary.increments, summary.accepted as u64);
}

#[test]
fn control_without_a_gate_increments_are_lost() {
    let violations = contend("ungated").check().expect_err("the late writes overwrote others");
    let lost = |violation: &Violation| matches!(violation, Violation::LostUpdate { .. });
    let stale = |violation: &Violation| matches!(violation, Violation::StaleWrite { .. });
    assert!(violations.iter().any(lost) && violations.iter().any(stale), "{violations:?}");
}

/// Lets processes increment a value, stops each in the midst of it, and gathers what they saw.
fn contend(role: &str) -> History {
    let server = RedisServer::start();
    let index: [String; PROCESSES] = std::array::from_fn(|i| i.to_string());
    let spawn = |index: &String| {
        child::spawn(module_path!(), role, &[("url", &server.url()), ("index", index)])
    };
    let mut children = index.each_ref().map(spawn);
    for (index, child) in index.iter().zip(&mut children) {
        server.command(&["SET", &format!("pause:{index}"), "1"]);
        let read: u64 = child.wait_for_line("read ", wait::CEILING).parse().expect("a number");
        child.stop();
        let written = || server.query::<Option<u64>>(&["GET", VALUE]).filter(|now| *now > read);
        assert!(Patience::of(wait::CEILING).until(written).is_some(), "nobody else got the lock");
        server.command(&["DEL", &format!("pause:{index}")]);
        child.cont();
        child.wait_for_line("went on", wait::CEILING);
    }
    server.command(&["SET", "enough", "1"]);
    for child in &mut children {
        child.wait_for_line("done", wait::CEILING);
    }
    let value = server.query(&["GET", VALUE]);
    let told = children.iter().flat_map(|child| events::read(child.seen()));
    told.chain([Event::CounterRead { value }]).collect()
}

#[test]
fn child_program() {
    if let Some(role) = child::role() {
        child::run(compete(role == "gated"));
    }
}

async fn compete(gated: bool) {
    let (url, index) = (child::arg("url"), child::arg("index"));
    let locks = patient::builder().ttl(TTL).connect(&url).await.expect("the server answers");
    let gate = gated.then(|| storage::gate_at(&url));
    let raw = raw::connect(&url).await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let worker = index.parse::<u64>().expect("a number") * TASKS + task;
        let lock = locks.lock("value").expect("a name");
        let (pause, gate, raw) = (format!("pause:{index}"), gate.clone(), raw.clone());
        tasks.spawn(Competitor { worker, pause, lock, gate, raw }.run());
    }
    tasks.join_all().await;
    println!("done");
}

struct Competitor {
    worker: Worker,
    pause: String,
    lock: ReentrantLock,
    gate: Option<RedisGate>,
    raw: MultiplexedConnection,
}

impl Competitor {
    async fn run(mut self) {
        while !raw::exists(&mut self.raw, "enough").await {
            let (worker, asked_at) = (self.worker, SystemClock.now());
            let guard = self.lock.acquire().wait_forever().await.expect("a lease");
            events::tell_granted(worker, &guard, asked_at);
            self.increment(&guard).await;
            events::release(guard).await;
        }
    }

    async fn increment(&mut self, guard: &Guard) {
        // From here on the holder before is shut out: what is read stays until it is written.
        if let Some(gate) = &self.gate
            && gate.advance(VALUE, guard.stamp()).await.is_err()
        {
            return;
        }
        let read = redis::cmd("GET").arg(VALUE).query_async::<Option<u64>>(&mut self.raw).await;
        let read = read.expect("an answer").unwrap_or_default();
        if raw::exists(&mut self.raw, &self.pause).await {
            println!("read {read}");
            while raw::exists(&mut self.raw, &self.pause).await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            println!("went on");
        }
        events::tell_believed(guard);
        let (fence, lease, at) = (guard.fence(), guard.id(), SystemClock.now());
        let order = self.write(read + 1, guard).await;
        let accepted = order.is_some();
        let order = order.unwrap_or_default();
        events::tell(Event::Wrote { fence, lease, at, order, accepted });
        if accepted {
            events::tell(Event::Incremented { worker: self.worker });
        }
    }

    /// The place of the write in the storage's order; `None` when it was refused.
    async fn write(&mut self, value: u64, guard: &Guard) -> Option<u64> {
        let Some(gate) = &self.gate else {
            let script = Script::new(WRITE);
            let wrote = script.key(VALUE).key(ORDER).arg(value).invoke_async(&mut self.raw).await;
            return Some(wrote.expect("an answer"));
        };
        let args = [value.to_string()];
        match gate.wrap(WRITE).call(VALUE, [VALUE, ORDER], args, guard.stamp()).await {
            Ok(Value::Int(order)) => Some(u64::try_from(order).expect("a place")),
            Err(GateError::Stale(_)) => None,
            other => panic!("{other:?}"),
        }
    }
}
