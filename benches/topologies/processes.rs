#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

//! What processes cost their servers while they do nothing: connections, checks, and questions where
//! the master is.

use std::time::{Duration, Instant};

use leasehold::LockRuntime;
use tokio::{runtime::Builder, task::JoinSet, time::sleep};

use crate::{
    Failure,
    lengths::Lengths,
    pairs::TOPOLOGIES,
    site::{Site, Topology},
    subjects::on_each,
    table::{Column, Key, Table},
    usage::{self, count, micros},
};

/// Until what follows a start is over.
const SETTLED: Duration = Duration::from_secs(2);

/// Renewed soon.
const SHORT: Duration = Duration::from_millis(600);

/// How much longer than a round of pairs nothing is done: periods are of seconds.
const LONGER: u32 = 2;

/// How long a runtime may take to leave.
const PATIENCE: Duration = Duration::from_secs(5);

const LEGEND: &str = "\
Medians of rounds (least..most). Lock runtimes that have used a lock on every master once, and do
nothing any more. µs/s: processor time in a second for each runtime, of all masters, of all Sentinels,
less what they use without any runtime. bytes, connections: for each runtime, at a master.";

const COLUMNS: &[Column] = &[
    ("masters µs/s", "master_micros_per_second", 1),
    ("Sentinels µs/s", "sentinel_micros_per_second", 1),
    ("bytes", "bytes", 0),
    ("connections", "connections", 2),
];

/// Runs rounds on all topologies.
pub(crate) fn measure(lengths: Lengths) -> Result<Table, Failure> {
    let title = "a process that does nothing";
    let mut table = Table::new("processes", title, COLUMNS, None, LEGEND);
    let sites = TOPOLOGIES.map(Topology::start);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let number = lengths.processes;
    for round in 1..=lengths.rounds.min(3) {
        for site in &sites {
            let values = runtime.block_on(values(site, number, lengths.measured * LONGER))?;
            table.add(Key::new(&site.topology, &format!("{number} runtimes"), ""), values);
        }
        eprintln!("processes: round {round}");
    }
    Ok(table)
}

/// What each of so many runtimes costs.
async fn values(site: &Site, number: usize, time: Duration) -> Result<Vec<f64>, Failure> {
    let [masters, sentinels] = spent(site, time).await;
    let before = State::of(site);
    let mut runtimes = Vec::new();
    let mut connecting: JoinSet<_> =
        (0..number).map(|process| Plan::of(site, process).run()).collect();
    while let Some(process) = connecting.join_next().await {
        runtimes.extend(process??);
    }
    sleep(SETTLED).await;
    let used = spent(site, time).await;
    let [bytes, connections] = State::of(site).since(&before);
    for runtime in runtimes {
        // The next round has none of them.
        let _ = runtime.shutdown(PATIENCE).await;
    }
    sleep(SETTLED).await;
    let each = |value: f64| value / count(number);
    let at_each_master = |value: f64| each(value) / count(site.masters().len());
    let of_sentinels =
        if site.sentinels().is_empty() { f64::NAN } else { each(used[1] - sentinels) };
    Ok(vec![
        each(used[0] - masters),
        of_sentinels,
        at_each_master(bytes),
        at_each_master(connections),
    ])
}

/// What a process connects to, and the locks that it uses: one on each master, which nobody else wants.
struct Plan {
    addresses: Vec<String>,
    /// Each with the number of the address that it is reached by.
    locks: Vec<(String, usize)>,
}

impl Plan {
    fn of(site: &Site, process: usize) -> Self {
        let names = site.name_on_each(&format!("process-{process}")).into_iter();
        let locks = names.map(|name| {
            let address = site.address_of(&name);
            (name, address)
        });
        Self { addresses: site.addresses(), locks: locks.collect() }
    }

    /// The runtimes of the process, when they have used the locks.
    async fn run(self) -> Result<Vec<LockRuntime>, Failure> {
        let connect = async |address: &str| Ok(LockRuntime::connect(address).await?);
        let runtimes = on_each(self.addresses, connect).await?;
        for (name, address) in &self.locks {
            let guard = runtimes[*address].lock(name.as_str())?.acquire().ttl(SHORT).await?;
            // Until it was renewed: renewals have a connection of their own.
            sleep(SHORT / 2).await;
            guard.release().await?;
        }
        Ok(runtimes)
    }
}

/// What masters and Sentinels use in a second, in microseconds, while nothing is done.
async fn spent(site: &Site, time: Duration) -> [f64; 2] {
    let used = || {
        let sentinels = site.sentinels().iter().map(usage::sentinel_cpu).sum::<Duration>();
        [usage::cpu_of(site.masters()), sentinels]
    };
    let (before, began) = (used(), Instant::now());
    sleep(time).await;
    let (after, seconds) = (used(), began.elapsed().as_secs_f64());
    [0, 1].map(|i| micros(after[i].saturating_sub(before[i])) / seconds)
}

/// Memory and connections of all masters.
struct State([f64; 2]);

impl State {
    fn of(site: &Site) -> Self {
        let sum = |read: fn(&leasehold_testkit::RedisServer) -> f64| {
            site.masters().iter().map(read).sum()
        };
        Self([sum(usage::memory), sum(usage::connections)])
    }

    fn since(&self, earlier: &Self) -> [f64; 2] {
        [0, 1].map(|i| self.0[i] - earlier.0[i])
    }
}
