use std::{rc::Rc, time::Duration};

use leasehold::LockRuntime;
use leasehold_testkit::{SeededEntropy, resident};
use tokio::{
    runtime::Handle,
    task::{LocalSet, spawn_local},
    time::sleep,
};

use super::{
    tally::Counting,
    task::{Task, Terms},
    values::Values,
};
use crate::support::{child, patient, raw, storage};

/// The key of the storage that ends all work.
pub(crate) const ENOUGH: &str = "enough";
/// What begins the line with the tally of a process.
pub(crate) const TALLY: &str = "tally ";
/// What begins the line with the memory of a process, in KiB.
pub(crate) const MEMORY: &str = "memory ";
/// What begins the line that says what is left of a process that ends.
pub(crate) const LEFT: &str = "left ";

const EVERY: Duration = Duration::from_millis(500);

/// The program of a process: tasks that use locks until it is enough.
pub(crate) async fn work() {
    LocalSet::new().run_until(run()).await;
}

async fn run() {
    let (url, shared) = (child::arg("url"), child::arg("storage"));
    let ttl = Duration::from_millis(number("ttl"));
    let builder = patient::builder().ttl(ttl).claim_window(ttl);
    let locks = builder.connect(&url).await.expect("there are no faults yet");
    let gate = (child::arg("gated") == "true").then(|| storage::gate_at(&shared));
    let mut raw = raw::connect(&shared).await;
    let terms = Rc::new(Terms {
        names: (0..number("names")).map(|n| locks.lock(format!("n{n}")).expect("a name")).collect(),
        ttl,
        told: child::arg("told") == "true",
        dice: SeededEntropy::new(number("seed")),
        counting: Counting::default(),
        enough: std::cell::Cell::new(false),
    });
    let (first, tasks) = (number::<u64>("first"), number::<u64>("tasks"));
    let values = Values::new(gate, raw.clone());
    println!("ready");
    let running: Vec<_> = (first..first + tasks)
        .map(|worker| spawn_local(Task::new(worker, Rc::clone(&terms), values.clone()).run()))
        .collect();
    let asking = || redis::cmd("EXISTS").arg(ENOUGH).to_owned();
    while !asking().query_async::<bool>(&mut raw).await.expect("an answer") {
        println!("{TALLY}{}", terms.counting.so_far());
        println!("{MEMORY}{}", resident() / 1024);
        sleep(EVERY).await;
    }
    terms.enough.set(true);
    for task in running {
        task.await.expect("no task comes to grief");
    }
    let counting = terms.counting.clone();
    drop((values, raw, terms));
    end(locks, &counting).await;
}

/// Ends the runtime, and tells what is left of it.
async fn end(locks: LockRuntime, counting: &Counting) {
    let report = locks.shutdown(Duration::from_secs(20)).await;
    drop(locks);
    // Tasks that were told to end need a moment.
    let mut tasks = alive();
    for _ in 0..500 {
        if tasks == 0 {
            break;
        }
        sleep(Duration::from_millis(10)).await;
        tasks = alive();
    }
    println!("{TALLY}{}", counting.so_far());
    println!("{LEFT}held={} unreleased={} tasks={tasks}", report.held, report.unreleased.len());
    println!("done");
}

fn alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(key: &str) -> T {
    child::arg(key).parse().expect("a number")
}
