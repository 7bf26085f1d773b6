#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

//! Tasks of this process that take and release locks which nobody waits for.

use std::time::{Duration, Instant};

use tokio::{
    task::{JoinSet, coop},
    time::timeout,
};

use crate::{
    Failure,
    bed::Bed,
    cpu,
    kind::Kind,
    round::Round,
    subjects::{Floor, Leasehold, Lock, Subject},
    waits::Waits,
};

/// How long tasks may go on after their time is over.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many tasks there are, and what they take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) tasks: usize,
    pub(crate) names: Names,
    /// For how long turns are kept, where they are.
    pub(crate) keep_idle: Duration,
}

/// The names of the locks, no two tasks have one in common.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Names {
    /// So many in all, dealt out among the tasks. Each task takes its own in turn.
    Again(usize),
    /// Each is taken once, and never again.
    Once,
}

/// Runs a round.
pub(crate) fn measure(
    bed: &mut Bed,
    kind: Kind,
    load: Load,
    subject: Subject,
) -> Result<Round, Failure> {
    bed.calls.flush()?;
    let (url, keep_idle) = (bed.server.url(), (subject == Subject::On).then_some(load.keep_idle));
    let stride = stride(load, subject);
    kind.build()?.block_on(async {
        match subject {
            Subject::Floor => run(bed, load, stride, Floor::connect(&url).await?).await,
            _ => run(bed, load, stride, Leasehold::connect(&url, keep_idle).await?).await,
        }
    })
}

/// One in how many pairs looks at the clock: reading it costs a part of a pair that sends nothing.
fn stride(load: Load, subject: Subject) -> usize {
    match (load.names, subject) {
        (Names::Again(_), Subject::On) => 13,
        _ => 1,
    }
}

async fn run<L: Lock>(bed: &mut Bed, load: Load, stride: usize, lock: L) -> Result<Round, Failure> {
    let worker = |task| Worker::new(&lock, load, stride, task);
    let workers = (0..load.tasks).map(worker).collect::<Result<Vec<_>, _>>()?;
    let (workers, _) = together(workers, bed.warmup).await?;
    let (commands, cpu, started) = (bed.calls.count("")?, cpu::time_used(), Instant::now());
    let (_, tally) = together(workers, bed.measured).await?;
    let (wall, cpu) = (started.elapsed(), cpu::time_used().saturating_sub(cpu));
    let commands = bed.calls.count("")?.rate_since(&commands);
    lock.leave().await;
    let acquired = count(tally.pairs) / wall.as_secs_f64();
    let [p50, p99] = tally.waits.percentiles();
    Ok(Round {
        acquired,
        handed: f64::NAN,
        commands: commands / acquired,
        client_micros: cpu.as_secs_f64() * 1e6 / count(tally.pairs),
        p50,
        p99,
        handed_p99: f64::NAN,
    })
}

/// What tasks did in a time.
#[derive(Debug, Default)]
struct Tally {
    pairs: usize,
    waits: Waits,
}

/// Lets all workers go on for so long.
async fn together<L: Lock>(
    workers: Vec<Worker<L>>,
    time: Duration,
) -> Result<(Vec<Worker<L>>, Tally), Failure> {
    let until = Instant::now() + time;
    let running: JoinSet<_> = workers.into_iter().map(|worker| worker.run(until)).collect();
    let mut all = Tally::default();
    let mut workers = Vec::new();
    for done in timeout(time + PATIENCE, running.join_all()).await? {
        let (worker, tally) = done?;
        workers.push(worker);
        all.pairs += tally.pairs;
        all.waits.append(tally.waits);
    }
    Ok((workers, all))
}

/// A task that takes and releases its names.
struct Worker<L: Lock> {
    lock: L,
    names: Vec<Named<L>>,
    load: Load,
    stride: usize,
    task: usize,
    done: usize,
}

/// A name, and the fence of its last lease.
struct Named<L: Lock> {
    name: L::Name,
    fence: u64,
}

impl<L: Lock> Worker<L> {
    fn new(lock: &L, load: Load, stride: usize, task: usize) -> Result<Self, Failure> {
        let mut names = Vec::new();
        if let Names::Again(all) = load.names {
            for number in (task..all).step_by(load.tasks) {
                names.push(Named::new(lock, &format!("kept-{number}"))?);
            }
        }
        Ok(Self { lock: lock.clone(), names, load, stride, task, done: 0 })
    }

    async fn run(mut self, until: Instant) -> Result<(Self, Tally), Failure> {
        let mut tally = Tally::default();
        loop {
            let looks = self.done.is_multiple_of(self.stride);
            let asked = looks.then(Instant::now);
            if asked.is_some_and(|now| now >= until) {
                return Ok((self, tally));
            }
            self.pair(asked, &mut tally.waits).await?;
            tally.pairs += 1;
            // What sends nothing does not wait either: the other tasks get their turn here.
            coop::consume_budget().await;
        }
    }

    async fn pair(&mut self, asked: Option<Instant>, waits: &mut Waits) -> Result<(), Failure> {
        let (number, task) = (self.done, self.task);
        self.done += 1;
        let named = match self.load.names {
            Names::Again(_) => {
                let names = self.names.len();
                &mut self.names[number % names]
            }
            Names::Once => &mut Named::new(&self.lock, &format!("once-{task}-{number}"))?,
        };
        let (fence, held) = self.lock.acquire(&named.name).await?;
        if let Some(asked) = asked {
            waits.push(asked.elapsed());
        }
        self.lock.release(&named.name, held).await?;
        if fence <= named.fence {
            return Err(format!("fence {fence} came after {}", named.fence).into());
        }
        named.fence = fence;
        Ok(())
    }
}

impl<L: Lock> Named<L> {
    fn new(lock: &L, name: &str) -> Result<Self, Failure> {
        Ok(Self { name: lock.name(name)?, fence: 0 })
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count of a few seconds is small")]
fn count(pairs: usize) -> f64 {
    pairs as f64
}
