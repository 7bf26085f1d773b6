#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

//! A process with very many waiters: what they cost in memory, in heartbeats, in subscriptions.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use leasehold::{Guard, LockRuntime};
use leasehold_testkit::resident;
use redis::{Client, aio::MultiplexedConnection};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{Failure, options::Kind};

/// For how long heartbeats are counted.
const COUNTED: Duration = Duration::from_secs(5);

/// How long things may take that take much less.
const LIMIT: Duration = Duration::from_secs(60);

/// Not renewed while it is measured.
const LONG_TTL: Duration = Duration::from_secs(1_800);

/// What a crowd costs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Crowd {
    /// Tasks that waited for one name.
    pub(crate) tasks: usize,
    /// Memory of a task that waits for a semaphore of tokio.
    pub(crate) bytes_per_idle_task: f64,
    /// Memory of a task that waits for the lock.
    pub(crate) bytes_per_waiting_task: f64,
    /// Places in the queue in Redis.
    pub(crate) places: usize,
    /// Whether all were served, in the order in which they asked.
    pub(crate) in_order: bool,
    /// How long that took.
    pub(crate) served_in_ms: f64,
    /// Names that were waited for at a time.
    pub(crate) names: usize,
    /// Commands that the process sent per second meanwhile.
    pub(crate) commands_per_second: f64,
    /// Channels that somebody subscribed to.
    pub(crate) channels: usize,
}

impl Crowd {
    /// Prints it for people.
    pub(crate) fn print(&self) {
        println!("\nvery many waiters in one process\n");
        println!(
            "{} tasks, one name: {:.0} bytes per waiting task ({:.0} of a task that waits for a \
             semaphore of tokio), {} places in Redis, {}, {:.1} ms",
            self.tasks,
            self.bytes_per_waiting_task,
            self.bytes_per_idle_task,
            self.places,
            if self.in_order { "served in order" } else { "NOT SERVED IN ORDER" },
            self.served_in_ms,
        );
        println!(
            "{} names: {:.0} commands/s, {} channel(s)",
            self.names, self.commands_per_second, self.channels
        );
    }
}

/// Prints what a crowd costs; the arguments are the server, the tasks, and the names.
pub(crate) fn main(arguments: &[String]) -> Result<(), Failure> {
    let [url, tasks, names] = arguments else { return Err("crowd URL TASKS NAMES".into()) };
    // On one thread tasks ask in the order in which they were spawned.
    let runtime = Kind::Current.build()?;
    let crowd = runtime.block_on(measure(url, tasks.parse()?, names.parse()?))?;
    runtime.shutdown_background();
    println!("{}", serde_json::to_string(&crowd)?);
    Ok(())
}

async fn measure(url: &str, tasks: usize, names: usize) -> Result<Crowd, Failure> {
    let mut admin = Client::open(url)?.get_multiplexed_async_connection().await?;
    let (holder, waiter) = (LockRuntime::connect(url).await?, LockRuntime::connect(url).await?);
    // They stay until the end, so that no memory is used twice.
    let (_idle, bytes_per_idle_task) = idle_tasks(tasks).await?;
    let guard = holder.lock("crowd")?.acquire().await?;
    let line = Line::of(&waiter, tasks).await?;
    let places = ask(&mut admin, &["ZCARD", "leasehold:{crowd}:queue"]).await?;
    let bytes_per_waiting_task = line.bytes_per_task;
    let (in_order, served_in_ms) = line.serve(guard).await?;
    let _held = hold_names(&holder, names).await?;
    let _waiting = wait_for_names(&waiter, names).await?;
    Ok(Crowd {
        tasks,
        bytes_per_idle_task,
        bytes_per_waiting_task,
        places,
        in_order,
        served_in_ms,
        names,
        commands_per_second: commands_per_second(&mut admin).await?,
        channels: channels(&mut admin).await?,
    })
}

// One name ----------------------------------------------------------------------------------------

async fn idle_tasks(tasks: usize) -> Result<(JoinSet<()>, f64), Failure> {
    let (never, before) = (Arc::new(Semaphore::new(0)), resident());
    let mut idle = JoinSet::new();
    for _ in 0..tasks {
        let never = Arc::clone(&never);
        idle.spawn(async move { drop(never.acquire().await) });
    }
    sleep(Duration::from_millis(100)).await;
    let each = per_task(resident().saturating_sub(before), tasks);
    Ok((idle, each))
}

/// Tasks that wait for one name.
struct Line {
    tasks: JoinSet<Result<(), Failure>>,
    bytes_per_task: f64,
    served: Arc<Mutex<Vec<usize>>>,
}

impl Line {
    async fn of(waiter: &LockRuntime, length: usize) -> Result<Self, Failure> {
        let served = Arc::new(Mutex::new(Vec::with_capacity(length)));
        let (lock, before) = (waiter.lock("crowd")?, resident());
        let mut tasks = JoinSet::new();
        for number in 0..length {
            let (lock, served) = (lock.clone(), Arc::clone(&served));
            tasks.spawn(async move {
                let guard = lock.acquire().wait_forever().await?;
                served.lock().unwrap_or_else(PoisonError::into_inner).push(number);
                guard.release().await?;
                Ok(())
            });
        }
        until_waiting(waiter, length).await?;
        let bytes_per_task = per_task(resident().saturating_sub(before), length);
        Ok(Self { tasks, bytes_per_task, served })
    }

    /// Whether all were served in order, and how many milliseconds it took.
    async fn serve(mut self, guard: Guard) -> Result<(bool, f64), Failure> {
        let (length, began) = (self.tasks.len(), Instant::now());
        guard.release().await?;
        while let Some(done) = timeout(LIMIT, self.tasks.join_next()).await? {
            done??;
        }
        let took = began.elapsed().as_secs_f64() * 1e3;
        let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        Ok((served.iter().copied().eq(0..length), took))
    }
}

// Many names --------------------------------------------------------------------------------------

async fn hold_names(holder: &LockRuntime, names: usize) -> Result<Vec<Guard>, Failure> {
    let mut holding = JoinSet::new();
    for name in 0..names {
        let lock = holder.lock(format!("crowd-{name}"))?;
        holding.spawn(async move { lock.acquire().ttl(LONG_TTL).await });
    }
    Ok(holding.join_all().await.into_iter().collect::<Result<_, _>>()?)
}

async fn wait_for_names(waiter: &LockRuntime, names: usize) -> Result<JoinSet<()>, Failure> {
    let mut waiting = JoinSet::new();
    for name in 0..names {
        let lock = waiter.lock(format!("crowd-{name}"))?;
        waiting.spawn(async move { drop(lock.acquire().wait_forever().await) });
    }
    until_waiting(waiter, names).await?;
    // Past the first heartbeats, which come all at once.
    sleep(Duration::from_secs(3)).await;
    Ok(waiting)
}

async fn commands_per_second(admin: &mut MultiplexedConnection) -> Result<f64, Failure> {
    let (before, began) = (scripts_called(admin).await?, Instant::now());
    sleep(COUNTED).await;
    let calls = scripts_called(admin).await? - before;
    Ok(f64::from(calls) / began.elapsed().as_secs_f64())
}

async fn scripts_called(admin: &mut MultiplexedConnection) -> Result<u32, Failure> {
    let stats: String = ask(admin, &["INFO", "commandstats"]).await?;
    let of =
        |line: &str| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next()?.parse().ok();
    Ok(stats.lines().find_map(of).unwrap_or(0))
}

async fn channels(admin: &mut MultiplexedConnection) -> Result<usize, Failure> {
    Ok(ask::<Vec<String>>(admin, &["PUBSUB", "CHANNELS"]).await?.len())
}

// Helpers -----------------------------------------------------------------------------------------

async fn ask<T: redis::FromRedisValue>(
    admin: &mut MultiplexedConnection,
    words: &[&str],
) -> Result<T, Failure> {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    Ok(command.query_async(admin).await?)
}

async fn until_waiting(waiter: &LockRuntime, tasks: usize) -> Result<(), Failure> {
    let waiting = async {
        while waiter.footprint().waiting < tasks {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LIMIT, waiting).await?;
    // Until the first acquires are answered.
    sleep(Duration::from_millis(200)).await;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "memory of a process is small enough")]
fn per_task(bytes: u64, tasks: usize) -> f64 {
    bytes as f64 / tasks.max(1) as f64
}
