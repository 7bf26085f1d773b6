#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{error::Error, future::Future, time::Instant};

use tokio::task::JoinSet;

use crate::cpu;

/// What one round came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Acquire and release pairs per second.
    pub(crate) pairs_per_second: f64,
    /// Processor time of this process per pair, in microseconds.
    pub(crate) cpu_micros_per_pair: f64,
}

/// What a worker is to do: which names, and how often in all.
#[derive(Debug, Clone)]
pub(crate) struct Share {
    /// The names of this worker alone, used in turn.
    pub(crate) names: Vec<String>,
    /// How many pairs to do.
    pub(crate) pairs: usize,
}

/// How many names a worker has of its own.
const NAMES: usize = 8;

/// Runs `pairs` pairs over `tasks` workers.
pub(crate) async fn run<F, W>(
    tasks: usize,
    pairs: usize,
    worker: F,
) -> Result<Round, Box<dyn Error>>
where
    F: Fn(Share) -> W,
    W: Future<Output = Result<(), String>> + Send + 'static,
{
    let share = pairs.div_ceil(tasks);
    let (cpu_before, started) = (cpu::time_used(), Instant::now());
    let mut workers = JoinSet::new();
    for task in 0..tasks {
        let names = (0..NAMES).map(|name| format!("bench-{task}-{name}")).collect();
        workers.spawn(worker(Share { names, pairs: share }));
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    let (seconds, cpu) =
        (started.elapsed().as_secs_f64(), cpu::time_used().saturating_sub(cpu_before));
    #[expect(clippy::cast_precision_loss, reason = "a count of pairs is small")]
    let done = (share * tasks) as f64;
    Ok(Round {
        pairs_per_second: done / seconds,
        cpu_micros_per_pair: cpu.as_secs_f64() * 1e6 / done,
    })
}
