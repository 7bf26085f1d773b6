//! Bytes that a lock takes in Redis.

use std::sync::Arc;

use tokio::runtime::Builder;

use crate::{
    Failure,
    lengths::Lengths,
    locks::{Actors, Step},
    site::{Site, Topology},
    table::{Column, Key, Table},
    usage::{self, count},
};

/// A server, and a node of a Cluster, which also keeps which keys a slot has.
const TOPOLOGIES: [Topology; 2] = [Topology::One, Topology::Cluster(1)];

/// How many commands are on their way at once.
const TASKS: usize = 64;

/// What is added by each step, to a lock that nobody has used before.
const STEPS: [(Step, &str); 4] = [
    (Step::Acquire(0), "held lock"),
    (Step::Queue(1), "first waiter, more"),
    (Step::Queue(2), "second waiter, more"),
    (Step::Release, "handed over, more"),
];

const LEGEND: &str = "\
Bytes of used_memory for a lock with a name of 9 bytes and labels of 21, with its share of the tables
of all keys; each row adds to the one before.";

const COLUMNS: &[Column] = &[("bytes", "bytes", 0)];

/// Fills each site once: memory does not vary from round to round.
pub(crate) fn measure(lengths: Lengths) -> Result<Table, Failure> {
    let title = "memory of a lock in Redis";
    let mut table = Table::new("memory", title, COLUMNS, None, LEGEND);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    for site in TOPOLOGIES.map(Topology::start) {
        let idle = runtime.block_on(idle(&site, lengths.locks))?;
        table.add(Key::new(&site.topology, &"free lock, used before", ""), vec![idle]);
        for (what, bytes) in runtime.block_on(used(&site, lengths.locks))? {
            table.add(Key::new(&site.topology, &what, ""), vec![bytes]);
        }
        eprintln!("memory: {}", site.topology);
    }
    Ok(table)
}

/// What stays of a lock that was released.
async fn idle(site: &Site, locks: usize) -> Result<f64, Failure> {
    let filling = Filling::begin(site, locks).await?;
    let mut all = Actors::locks(locks, TASKS)?;
    for step in [Step::Acquire(0), Step::Release] {
        all.step(&filling.actors, step).await?;
    }
    Ok(filling.bytes_each())
}

/// What each step adds.
async fn used(site: &Site, locks: usize) -> Result<Vec<(&'static str, f64)>, Failure> {
    let filling = Filling::begin(site, locks).await?;
    let mut all = Actors::locks(locks, TASKS)?;
    let (mut before, mut added) = (0.0, Vec::new());
    for (step, what) in STEPS {
        all.step(&filling.actors, step).await?;
        let bytes = filling.bytes_each();
        added.push((what, bytes - before));
        before = bytes;
    }
    Ok(added)
}

/// A server that is filled with locks.
struct Filling<'a> {
    site: &'a Site,
    actors: Arc<Actors>,
    locks: usize,
    empty: f64,
}

impl<'a> Filling<'a> {
    /// Begins with an empty server, to which everything is connected that will be.
    async fn begin(site: &'a Site, locks: usize) -> Result<Self, Failure> {
        let actors = Arc::new(Actors::connect(&site.addresses()[0]).await?);
        let mut one = Actors::locks(1, 1)?;
        one.step(&actors, Step::Acquire(0)).await?;
        site.flush();
        Ok(Self { site, actors, locks, empty: usage::memory(&site.masters()[0]) })
    }

    fn bytes_each(&self) -> f64 {
        (usage::memory(&self.site.masters()[0]) - self.empty) / count(self.locks)
    }
}
