use std::time::{Duration, SystemTime};

use leasehold_testkit::{ChildProcess, ClockShim, RedisServer};
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;

use super::{
    roles,
    scene::{self, NAME},
};
use crate::{
    faults::server::scene::connect,
    support::{child, matrix::row, raw, wait},
};

row! {
    client_clocks_apart: protected, control;
    fault: "of three processes one's time of day is a minute ahead, and one's a minute behind; then two are a second off",
    right: "all share the lock alike: since when a process waits is what the servers have seen",
    control: "a queue in the order of the times that the askers tell",
}

pub(super) const ROLE: &str = "shares";
pub(super) const NAIVE_ROLE: &str = "naive-shares";

const TTL: Duration = Duration::from_secs(5);
/// Tasks of each process.
const TASKS: usize = 2;
const HOLD: Duration = Duration::from_millis(1);
const MINUTE: i64 = 60_000;
/// How often the lock is had, in all.
const SECTIONS: u64 = 1_200;
/// The keys of the storage: the turns of each process, and whether all begin and end.
const TURNS: &str = "turns";
const BEGINS: &str = "begins";
const ENDS: &str = "ends";

/// How often each of the processes had the lock, whose times of day are wrong by so many milliseconds.
fn shares(role: &str, url: &str, shifts: [i64; 3]) -> Vec<u64> {
    let storage = RedisServer::start();
    let start = |(index, shift): (usize, i64)| {
        let shim = ClockShim::build();
        let step = Duration::from_millis(shift.unsigned_abs());
        if shift < 0 {
            shim.back(step);
        } else {
            shim.forward(step);
        }
        let (index, storage) = (index.to_string(), storage.url());
        let args = [("url", url), ("storage", &storage), ("index", &index)];
        let mut command = child::command(roles::CHILD, role, &args);
        command.envs(shim.variables().iter().map(|(key, value)| (key, value)));
        (ChildProcess::spawn(command), shim)
    };
    let mut children: Vec<_> = shifts.into_iter().enumerate().map(start).collect();
    for (child, _) in &mut children {
        child.wait_for_line("ready", wait::CEILING);
    }
    storage.command(&["SET", BEGINS, "1"]);
    let turns = || -> Vec<u64> {
        let turns =
            |index: usize| storage.query::<Option<u64>>(&["HGET", TURNS, &index.to_string()]);
        (0..shifts.len()).map(|index| turns(index).unwrap_or(0)).collect()
    };
    wait::block_until("they work", || turns().iter().sum::<u64>() >= SECTIONS);
    let turns = turns();
    storage.command(&["SET", ENDS, "1"]);
    for (child, _) in &mut children {
        child.wait_for_line("done", wait::CEILING);
    }
    turns
}

fn protected() -> String {
    let group = scene::group(3);
    let mut seen = Vec::new();
    for shifts in [[MINUTE, 0, -MINUTE], [1_000, 0, -1_000]] {
        let turns = shares(ROLE, &group.url(), shifts);
        let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
        assert!(most * 10 <= least * 12, "{shifts:?} ms: {turns:?}");
        seen.push(format!("{turns:?}"));
    }
    scene::leaves_nothing(&group);
    format!("turns of the three: {}", seen.join(", then "))
}

fn control() -> String {
    let server = RedisServer::start();
    let turns = shares(NAIVE_ROLE, &server.url(), [MINUTE, 0, -MINUTE]);
    assert!(turns[0] * 2 < turns[2], "the control came to no harm: {turns:?}");
    format!("turns of the three: {turns:?}")
}

/// The storage of a child, which counts.
#[derive(Clone)]
struct Storage(MultiplexedConnection);

impl Storage {
    async fn exists(&mut self, key: &str) -> bool {
        let asked = redis::cmd("EXISTS").arg(key).query_async(&mut self.0).await;
        asked.expect("an answer")
    }

    /// One section, under the lock.
    async fn count(&mut self) {
        let mut counting = redis::cmd("HINCRBY");
        counting.arg(TURNS).arg(child::arg("index")).arg(1);
        counting.query_async::<()>(&mut self.0).await.expect("an answer");
        tokio::time::sleep(HOLD).await;
    }
}

/// The storage of this child, when all have begun.
async fn begun() -> Storage {
    let mut storage = Storage(raw::connect(&child::arg("storage")).await);
    println!("ready");
    while !storage.exists(BEGINS).await {
        tokio::time::sleep(HOLD).await;
    }
    storage
}

/// A child: its tasks have the lock again and again.
pub(super) async fn share() {
    let locks = connect(&child::arg("url"), TTL).await;
    let storage = begun().await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (lock, mut storage) = (locks.lock(NAME).expect("a name"), storage.clone());
        tasks.spawn(async move {
            while !storage.exists(ENDS).await {
                let guard = lock.acquire().wait(wait::CEILING).await.expect("a lease");
                storage.count().await;
                guard.release().await.expect("held to the end");
            }
        });
    }
    tasks.join_all().await;
    println!("done");
}

/// A child of the control: stands in a queue under the time of day, and works when it is the first.
pub(super) async fn share_naively() {
    let queue = raw::connect(&child::arg("url")).await;
    let storage = begun().await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (mut queue, mut storage) = (queue.clone(), storage.clone());
        let own = format!("{}/{task}", child::arg("index"));
        tasks.spawn(async move {
            while !storage.exists(ENDS).await {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                let since = since.expect("a time after 1970").as_micros();
                let mut standing = redis::cmd("ZADD");
                standing.arg(NAME).arg(since.to_string()).arg(&own);
                standing.query_async::<()>(&mut queue).await.expect("an answer");
                loop {
                    let first = redis::cmd("ZRANGE").arg(NAME).arg(0).arg(0).take();
                    let first: Vec<String> =
                        first.query_async(&mut queue).await.expect("an answer");
                    if first.first() == Some(&own) {
                        storage.count().await;
                        break;
                    }
                    if storage.exists(ENDS).await {
                        return;
                    }
                    tokio::time::sleep(HOLD).await;
                }
                let leaving = redis::cmd("ZREM").arg(NAME).arg(&own).take();
                leaving.query_async::<()>(&mut queue).await.expect("an answer");
            }
        });
    }
    tasks.join_all().await;
    println!("done");
}
