#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use redis::Client;
use tokio::task::JoinSet;

use crate::{Failure, cpu, server_cpu, subjects::Pairs};

/// How many tasks take and release locks of their own, and how many pairs they do in all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) tasks: usize,
    pub(crate) pairs: usize,
}

/// How many names a worker has of its own, used in turn.
const NAMES: usize = 8;

/// Runs the pairs of a load; a value for each column.
pub(crate) async fn run(url: &str, load: Load, subject: &impl Pairs) -> Result<Vec<f64>, Failure> {
    let share = load.pairs.div_ceil(load.tasks);
    let mut server = Client::open(url)?.get_connection()?;
    let server_before = server_cpu::time_used(&mut server)?;
    let (client_before, started) = (cpu::time_used(), Instant::now());
    let mut workers = JoinSet::new();
    for task in 0..load.tasks {
        workers.spawn(work(subject.clone(), task, share));
    }
    let mut times = Vec::with_capacity(share * load.tasks);
    while let Some(done) = workers.join_next().await {
        times.append(&mut done??);
    }
    let (wall, client) = (started.elapsed(), cpu::time_used().saturating_sub(client_before));
    let used = server_cpu::time_used(&mut server)?.saturating_sub(server_before);
    times.sort_unstable();
    let done = count(times.len());
    Ok(vec![
        done / wall.as_secs_f64(),
        micros(client) / done,
        micros(used) / done,
        micros(times[times.len() / 2]),
        micros(times[times.len() * 99 / 100]),
    ])
}

/// One task's pairs, and how long each took.
async fn work(subject: impl Pairs, task: usize, share: usize) -> Result<Vec<Duration>, Failure> {
    let names: Vec<String> = (0..NAMES).map(|name| format!("bench-{task}-{name}")).collect();
    let mut times = Vec::with_capacity(share);
    for pair in 0..share {
        let started = Instant::now();
        subject.pair(&names[pair % NAMES], pair).await?;
        times.push(started.elapsed());
    }
    Ok(times)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a count of pairs is small")]
fn count(pairs: usize) -> f64 {
    pairs as f64
}
