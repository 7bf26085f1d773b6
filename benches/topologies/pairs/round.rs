#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    fmt,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use crate::{
    Failure, cpu,
    lengths::Lengths,
    site::Site,
    subjects::Pairs,
    table::Column,
    usage::{self, count, micros},
};

/// How many tasks take and release locks of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Tasks for each master.
    pub(crate) each: usize,
    pub(crate) lengths: Lengths,
}

/// As rows are named.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.each == 1 { "task" } else { "tasks" };
        write!(f, "{} {plural} per master", self.each)
    }
}

/// What a round measures.
pub(crate) const COLUMNS: &[Column] = &[
    ("pairs/s", "pairs_per_second", 0),
    ("client µs", "client_micros", 1),
    ("masters µs", "master_micros", 1),
    ("replicas µs", "replica_micros", 1),
    ("p50 µs", "p50_micros", 0),
    ("p99 µs", "p99_micros", 0),
];

/// How many names a task has of its own, used in turn.
const NAMES: usize = 8;

/// Runs pairs for a while; `of` tells who takes the lock of a name.
pub(crate) async fn run<P: Pairs>(
    site: &Site,
    load: Load,
    of: impl Fn(&str) -> P,
) -> Result<Vec<f64>, Failure> {
    let Lengths { warmup, measured, .. } = load.lengths;
    let workers = (0..load.each * site.masters().len()).map(|task| Worker::new(task, &of));
    let workers = together(workers.collect(), warmup).await?.0;
    let servers = [site.masters(), site.replicas()];
    let before = servers.map(usage::cpu_of);
    let (client, started) = (cpu::time_used(), Instant::now());
    let (_, mut times) = together(workers, measured).await?;
    let (wall, client) = (started.elapsed(), cpu::time_used().saturating_sub(client));
    let [masters, replicas] = [0, 1].map(|i| usage::cpu_of(servers[i]).saturating_sub(before[i]));
    times.sort_unstable();
    let done = count(times.len());
    let at = |percent| times.get(times.len() * percent / 100).copied().map_or(f64::NAN, micros);
    let of_replicas = if servers[1].is_empty() { f64::NAN } else { micros(replicas) / done };
    Ok(vec![
        done / wall.as_secs_f64(),
        micros(client) / done,
        micros(masters) / done,
        of_replicas,
        at(50),
        at(99),
    ])
}

/// Lets all workers go on for so long, and returns how long each of their pairs took.
async fn together<P: Pairs>(
    workers: Vec<Worker<P>>,
    time: Duration,
) -> Result<(Vec<Worker<P>>, Vec<Duration>), Failure> {
    let until = Instant::now() + time;
    let mut running: JoinSet<_> = workers.into_iter().map(|worker| worker.run(until)).collect();
    let (mut workers, mut all) = (Vec::new(), Vec::new());
    while let Some(done) = running.join_next().await {
        let (worker, mut times) = done??;
        workers.push(worker);
        all.append(&mut times);
    }
    Ok((workers, all))
}

/// A task with names of its own.
struct Worker<P> {
    names: Vec<(P, String)>,
    done: usize,
}

impl<P: Pairs> Worker<P> {
    fn new(task: usize, of: impl Fn(&str) -> P) -> Self {
        let names = (0..NAMES).map(|number| format!("bench-{task}-{number}"));
        Self { names: names.map(|name| (of(&name), name)).collect(), done: 0 }
    }

    async fn run(mut self, until: Instant) -> Result<(Self, Vec<Duration>), Failure> {
        let mut times = Vec::new();
        loop {
            let asked = Instant::now();
            if asked >= until {
                return Ok((self, times));
            }
            let (subject, name) = &self.names[self.done % NAMES];
            subject.pair(name, self.done).await?;
            self.done += 1;
            times.push(asked.elapsed());
        }
    }
}
