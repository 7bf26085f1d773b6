#![expect(clippy::disallowed_methods, reason = "workers pause and stand still in real time")]

use std::{fmt::Display, thread, time::Duration};

use leasehold::{
    Guard, ReentrantLock, Stamp, Strictness,
    fencing::{FenceGate, GateError, RedisGate},
    redis::{QuorumSettings, Replication},
    time::{Clock, Instant, SystemClock},
};
use leasehold_testkit::{Event, history::Worker};
use redis::{Script, Value, aio::MultiplexedConnection};
use tokio::task::JoinSet;

use super::{
    child, events,
    naive::{NaiveHeld, NaiveLock},
    patient, raw, storage,
};

/// The role of a child that works.
pub(crate) const ROLE: &str = "worker";
/// The key of the value, and that of the order in which it was written.
pub(crate) const VALUE: &str = "{value}";
const ORDER: &str = "{value}:order";
/// The key that ends all work.
pub(crate) const ENOUGH: &str = "enough";

/// Writes, and tells the storage's own order.
const WRITE: &str = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('INCR', KEYS[2])";
/// How far the clocks of a quorum may be apart.
const TOLERANCE: Duration = Duration::from_millis(100);
/// After an error of the lock.
const PAUSE: Duration = Duration::from_millis(20);

/// The key by which a process is told to stand still.
pub(crate) fn flag(what: &str, index: usize) -> String {
    format!("{what}:{index}")
}

/// The module whose test is the program of a child.
pub(super) const CHILD: &str = module_path!();

#[test]
fn child_program() {
    if child::role().as_deref() == Some(ROLE) {
        child::run(work());
    }
}

async fn work() {
    let (url, shared) = (child::arg("url"), child::arg("storage"));
    let index: usize = number("index");
    let ttl = Duration::from_millis(number("ttl"));
    let lock = lock(&url, ttl).await;
    let gate = (child::arg("gated") == "true").then(|| storage::gate_at(&shared));
    let raw = raw::connect(&shared).await;
    println!("ready");
    let (mut running, tasks) = (JoinSet::new(), number("tasks"));
    for task in 0..tasks {
        let hold = Duration::from_millis(number("hold"));
        let (lock, gate, raw) = (lock.clone(), gate.clone(), raw.clone());
        let worker = (index * tasks + task) as Worker;
        running.spawn(Task { worker, index, hold, lock, gate, raw }.run());
    }
    running.join_all().await;
    println!("done");
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(key: &str) -> T {
    child::arg(key).parse().expect("a number")
}

async fn lock(url: &str, ttl: Duration) -> AnyLock {
    let name = child::arg("name");
    if child::arg("lock") == "naive" {
        return AnyLock::Naive(NaiveLock::new(raw::connect(url).await, &name, ttl));
    }
    let replication = match number("replicas") {
        0 => Replication::NONE,
        replicas => {
            Replication::wait(replicas, ttl.min(Duration::from_secs(10))).expect("in range")
        }
    };
    let builder = patient::builder().ttl(ttl).claim_window(ttl).replication(replication);
    let builder = builder.quorum(quorum(ttl));
    // To examine a server that hangs on purpose takes the whole connect timeout.
    let builder = builder.strictness(Strictness::Ignore);
    let locks = builder.connect(url).await.expect("the server answers");
    AnyLock::Leasehold(locks.lock(name).expect("a name"))
}

/// How long a server of a quorum stays out that lost its data: hardly longer than a lease lives.
fn quorum(ttl: Duration) -> QuorumSettings {
    let settings = QuorumSettings::default().longest_ttl(ttl);
    let settings = settings.and_then(|settings| settings.tolerance(TOLERANCE));
    settings.expect("settings in their ranges")
}

/// A lock of either kind.
#[derive(Debug, Clone)]
enum AnyLock {
    Leasehold(ReentrantLock),
    Naive(NaiveLock),
}

/// What is held of it.
#[derive(Debug)]
enum Held {
    Leasehold(Guard),
    Naive(NaiveHeld),
}

impl AnyLock {
    /// Tries until it has the lock; every error is told.
    async fn acquire(&mut self, raw: &mut MultiplexedConnection) -> Option<Held> {
        loop {
            let outcome = match self {
                Self::Leasehold(lock) => {
                    let acquiring = lock.acquire().wait(Duration::from_millis(500)).await;
                    acquiring.map(|guard| Some(Held::Leasehold(guard))).map_err(trouble)
                }
                Self::Naive(lock) => {
                    lock.try_acquire().await.map(|held| held.map(Held::Naive)).map_err(trouble)
                }
            };
            match outcome {
                Ok(Some(held)) => return Some(held),
                Ok(None) => tokio::time::sleep(PAUSE / 20).await,
                Err(()) => tokio::time::sleep(PAUSE).await,
            }
            if exists(raw, ENOUGH).await {
                return None;
            }
        }
    }

    async fn release(&mut self, held: Held) -> bool {
        match (self, held) {
            (_, Held::Leasehold(guard)) => guard.release().await.map_err(trouble).is_ok(),
            (Self::Naive(lock), Held::Naive(held)) => {
                lock.release(&held).await.map_err(trouble) == Ok(true)
            }
            (Self::Leasehold(_), Held::Naive(_)) => unreachable!("it was taken from another lock"),
        }
    }
}

fn trouble(error: impl Display) {
    println!("trouble {error}");
}

impl Held {
    fn stamp(&self) -> Stamp {
        match self {
            Self::Leasehold(guard) => guard.stamp(),
            Self::Naive(held) => Stamp::new(held.fence, held.lease),
        }
    }

    fn believed_until(&self) -> Option<Instant> {
        match self {
            Self::Leasehold(guard) => {
                let (now, left) = (SystemClock.now(), guard.remaining());
                (!left.is_zero()).then(|| now + left)
            }
            Self::Naive(held) => Some(held.until),
        }
    }

    /// Tells until when the holder believes, if it still does.
    fn tell_belief(&self) {
        let lease = self.stamp().lease;
        if let Some(until) = self.believed_until() {
            events::tell(Event::BelievedUntil { lease, until });
        }
    }
}

/// One of the tasks that increment the value.
struct Task {
    worker: Worker,
    /// Which process this is.
    index: usize,
    hold: Duration,
    lock: AnyLock,
    gate: Option<RedisGate>,
    raw: MultiplexedConnection,
}

impl Task {
    async fn run(mut self) {
        while !exists(&mut self.raw, ENOUGH).await {
            let (worker, asked_at) = (self.worker, SystemClock.now());
            events::tell(Event::Asked { worker, at: asked_at });
            let Some(held) = self.lock.acquire(&mut self.raw).await else { return };
            let Stamp { fence, lease, .. } = held.stamp();
            let asked_at = match &held {
                Held::Naive(held) => held.asked_at,
                Held::Leasehold(_) => asked_at,
            };
            let granted_at = SystemClock.now();
            events::tell(Event::Granted { worker, fence, lease, asked_at, granted_at });
            held.tell_belief();
            self.increment(&held).await;
            let at = SystemClock.now();
            // Belief ended when it was given back, whatever came of that.
            events::tell(if self.lock.release(held).await {
                Event::Released { lease, at }
            } else {
                Event::Lost { lease, at }
            });
        }
    }

    async fn increment(&mut self, held: &Held) {
        // From here on the holder before is shut out: what is read stays until it is written.
        if let Some(gate) = &self.gate
            && gate.advance(VALUE, held.stamp()).await.is_err()
        {
            return;
        }
        let read = redis::cmd("GET").arg(VALUE).query_async::<Option<u64>>(&mut self.raw).await;
        let read = read.expect("an answer").unwrap_or_default();
        tokio::time::sleep(self.hold).await;
        self.stand_still(read).await;
        held.tell_belief();
        let (Stamp { fence, lease, .. }, at) = (held.stamp(), SystemClock.now());
        let order = self.write(read + 1, held).await;
        let (accepted, order) = (order.is_some(), order.unwrap_or_default());
        events::tell(Event::Wrote { fence, lease, at, order, accepted });
        if accepted {
            events::tell(Event::Incremented { worker: self.worker });
        }
    }

    /// Stands still between read and write, if it is told to.
    async fn stand_still(&mut self, read: u64) {
        let [halt, halted, stall] = ["halt", "halted", "stall"].map(|what| flag(what, self.index));
        // One task takes the order; it is an error if there is none.
        let mut taking = redis::cmd("RENAME");
        taking.arg(halt).arg(&halted);
        if taking.query_async::<()>(&mut self.raw).await.is_ok() {
            println!("halted {read}");
            while exists(&mut self.raw, &halted).await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            println!("went on");
        }
        let mut taking = redis::cmd("GETDEL");
        let length = taking.arg(stall).query_async::<Option<u64>>(&mut self.raw).await;
        if let Some(millis) = length.expect("an answer") {
            println!("halted {read}");
            thread::sleep(Duration::from_millis(millis));
            println!("went on");
        }
    }

    /// The place of the write in the storage's order; `None` when it was refused.
    async fn write(&mut self, value: u64, held: &Held) -> Option<u64> {
        let Some(gate) = &self.gate else {
            let script = Script::new(WRITE);
            let wrote = script.key(VALUE).key(ORDER).arg(value).invoke_async(&mut self.raw).await;
            return Some(wrote.expect("an answer"));
        };
        let args = [value.to_string()];
        match gate.wrap(WRITE).call(VALUE, [VALUE, ORDER], args, held.stamp()).await {
            Ok(Value::Int(order)) => Some(u64::try_from(order).expect("a place")),
            Err(GateError::Stale(_)) => None,
            other => panic!("{other:?}"),
        }
    }
}

async fn exists(raw: &mut MultiplexedConnection, key: &str) -> bool {
    redis::cmd("EXISTS").arg(key).query_async(raw).await.expect("an answer")
}
