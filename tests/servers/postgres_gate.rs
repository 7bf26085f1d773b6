//! Two processes that race for a row of a real PostgreSQL, one stopped past its lease in each
//! round.
//!
//! They increment one value under one lock. In turn, one is stopped between its read and its write
//! until the other has written; then it goes on and writes. Behind a gate every such write is
//! refused; without one it stands, and an increment is lost.
#![expect(clippy::disallowed_methods, reason = "stopped processes take real time")]

use std::{env, time::Duration};

use leasehold::{
    Guard, ReentrantLock,
    fencing::{
        FenceGate, GateError,
        postgres::{FenceTable, PostgresGate},
        sqlx::{self, PgPool, postgres::PgPoolOptions},
    },
    time::{Clock, SystemClock},
};
use leasehold_testkit::{
    ChildProcess, Event, History, Patience, PostgresServer, RedisServer, Violation, history::Worker,
};
use redis::aio::MultiplexedConnection;

use crate::support::{child, events, patient, raw, wait};

const PROCESSES: usize = 2;
const TTL: Duration = Duration::from_millis(300);

const RESOURCE: &str = "counter/1";
const READ: &str = "SELECT value FROM counter WHERE id = 1";
/// Writes, and tells the storage's own order.
const WRITE: &str = "UPDATE counter SET value = $1, place = place + 1 WHERE id = 1 RETURNING place";

/// How many rounds are run; `LEASEHOLD_ROUNDS=200` for the record.
fn rounds() -> usize {
    env::var("LEASEHOLD_ROUNDS").map_or(20, |rounds| rounds.parse().expect("a number of rounds"))
}

#[tokio::test]
async fn behind_the_gate_the_stale_write_is_refused_in_every_round() {
    let rounds = rounds();
    let (verdicts, history) = race("gated", rounds).await;
    assert_eq!(verdicts, vec!["refused"; rounds]);
    let summary = history.check_strictly().expect("the storage refused what came late");
    assert!(summary.refused >= rounds && summary.lost >= rounds, "{summary:?}");
    assert_eq!(summary.increments, summary.accepted as u64);
    println!(
        "  postgres gate: {rounds} rounds, {} stale writes refused, {} writes accepted",
        summary.refused, summary.accepted
    );
}

#[tokio::test]
async fn control_without_the_gate_stale_writes_are_accepted() {
    let rounds = 5;
    let (verdicts, history) = race("ungated", rounds).await;
    assert_eq!(verdicts, vec!["accepted"; rounds]);
    let violations = history.check().expect_err("the late writes overwrote others");
    let lost = |violation: &Violation| matches!(violation, Violation::LostUpdate { .. });
    let stale = |violation: &Violation| matches!(violation, Violation::StaleWrite { .. });
    assert!(violations.iter().any(lost) && violations.iter().any(stale), "{violations:?}");
}

/// Runs the rounds, and gathers how each late write ended and what everybody saw.
async fn race(role: &str, rounds: usize) -> (Vec<String>, History) {
    let (locks, storage) = (RedisServer::start(), PostgresServer::start());
    let db = connect(&storage.url()).await;
    create(&db).await;
    let life = (60 + 5 * rounds).to_string();
    let index: [String; PROCESSES] = std::array::from_fn(|i| i.to_string());
    let (locks_url, db_url) = (locks.url(), storage.url());
    let spawn = |index: &String| {
        let args = [("locks", &*locks_url), ("db", &*db_url), ("index", index)];
        child::spawn(
            module_path!(),
            role,
            &[args.as_slice(), &[(child::LIFE_SECONDS, &life)]].concat(),
        )
    };
    let mut children = index.each_ref().map(spawn);
    let mut verdicts = Vec::new();
    for round in 0..rounds {
        let stopped = round % PROCESSES;
        verdicts.push(stop_past_lease(&mut children[stopped], stopped, &locks, &db).await);
    }
    locks.command(&["SET", "enough", "1"]);
    for child in &mut children {
        child.wait_for_line("done", wait::CEILING);
    }
    let value = u64::try_from(value(&db).await).expect("a count");
    let told = children.iter().flat_map(|child| events::read(child.seen()));
    (verdicts, told.chain([Event::CounterRead { value }]).collect())
}

async fn connect(url: &str) -> PgPool {
    PgPoolOptions::new().max_connections(2).connect(url).await.expect("the server answers")
}

async fn create(db: &PgPool) {
    let tables = "CREATE TABLE counter (id INT PRIMARY KEY, value BIGINT, place BIGINT); \
                  INSERT INTO counter VALUES (1, 0, 0)";
    sqlx::raw_sql(tables).execute(db).await.expect("tables");
    sqlx::raw_sql(FenceTable::CREATE).execute(db).await.expect("the migration");
}

/// Stops a process between its read and its write until the other has written, and returns what
/// its write was answered.
async fn stop_past_lease(
    child: &mut ChildProcess,
    index: usize,
    locks: &RedisServer,
    db: &PgPool,
) -> String {
    let pause = format!("pause:{index}");
    locks.command(&["SET", &pause, "1"]);
    let read: i64 = child.wait_for_line("read ", wait::CEILING).parse().expect("a number");
    child.stop();
    let written = async || (value(db).await > read).then_some(());
    let written = Patience::of(wait::CEILING).until_async(written).await;
    assert!(written.is_some(), "the other process did not write");
    locks.command(&["DEL", &pause]);
    child.cont();
    child.wait_for_line("late write ", wait::CEILING)
}

async fn value(db: &PgPool) -> i64 {
    sqlx::query_scalar(READ).fetch_one(db).await.expect("a value")
}

#[test]
fn child_program() {
    if let Some(role) = child::role() {
        child::run(compete(role == "gated"));
    }
}

async fn compete(gated: bool) {
    let locks = patient::builder().ttl(TTL).connect(&child::arg("locks")).await;
    let locks = locks.expect("the server answers");
    let pool = connect(&child::arg("db")).await;
    let index = child::arg("index");
    let competitor = Competitor {
        worker: index.parse().expect("a number"),
        pause: format!("pause:{index}"),
        lock: locks.lock("value").expect("a name"),
        gate: gated.then(|| PostgresGate::new(pool.clone())),
        pool,
        raw: raw::connect(&child::arg("locks")).await,
    };
    competitor.run().await;
    println!("done");
}

struct Competitor {
    worker: Worker,
    pause: String,
    lock: ReentrantLock,
    gate: Option<PostgresGate>,
    pool: PgPool,
    raw: MultiplexedConnection,
}

impl Competitor {
    async fn run(mut self) {
        while !raw::exists(&mut self.raw, "enough").await {
            let (worker, asked_at) = (self.worker, SystemClock.now());
            // A ttl this short is over now and then before a busy machine has answered.
            let Ok(guard) = self.lock.acquire().wait_forever().await else { continue };
            events::tell_granted(worker, &guard, asked_at);
            self.increment(&guard).await;
            events::release(guard).await;
        }
    }

    async fn increment(&mut self, guard: &Guard) {
        // From here on the holder before is shut out: what is read stays until it is written.
        if let Some(gate) = &self.gate {
            match gate.advance(RESOURCE, guard.stamp()).await {
                Ok(_) => {}
                Err(GateError::Stale(_)) => return,
                Err(error) => panic!("{error}"),
            }
        }
        let read: i64 = sqlx::query_scalar(READ).fetch_one(&self.pool).await.expect("a value");
        let pauses = raw::exists(&mut self.raw, &self.pause).await;
        if pauses {
            println!("read {read}");
            while raw::exists(&mut self.raw, &self.pause).await {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
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
        if pauses {
            println!("late write {}", if accepted { "accepted" } else { "refused" });
        }
    }

    /// The place of the write in the storage's order; `None` when it was refused.
    async fn write(&self, value: i64, guard: &Guard) -> Option<u64> {
        let mut tx = self.pool.begin().await.expect("a transaction");
        if let Some(gate) = &self.gate {
            match gate.admit_in(&mut tx, RESOURCE, guard.stamp()).await {
                Ok(_) => {}
                Err(GateError::Stale(_)) => return None,
                Err(error) => panic!("{error}"),
            }
        }
        let write = sqlx::query_scalar(WRITE).bind(value);
        let place: i64 = write.fetch_one(&mut *tx).await.expect("a place");
        tx.commit().await.expect("a commit");
        Some(u64::try_from(place).expect("a place"))
    }
}
