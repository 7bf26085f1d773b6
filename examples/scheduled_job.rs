//! A job that every instance of a service would start, and one of them runs.
//!
//! Three instances, whose clocks differ, book periods of time when these are over. An instance that
//! finds the lock taken skips. `min_hold` keeps the lock closed, however fast the job was, until
//! the slowest clock has reached the same time. One instance dies in a run, and another takes over
//! after the ttl. Every run writes its result with its fence, so that a run that was given up for
//! dead cannot add to it later. At the end the program checks what was written.
//!
//! `cargo run --example scheduled_job` needs nothing but Rust: the instances are threads. With
//! `REDIS_URL` set they are processes, and the one that dies is aborted.

mod rows;

use std::{
    env, fmt,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use leasehold::{
    Guard, LockRuntime, LockRuntimeBuilder,
    store::{FenceSettings, MemoryStore},
    time::{Clock, SystemClock},
};
use rows::{Failure, Row, Rows};
use tokio::runtime;

/// How often the job is due.
const PERIOD: Duration = Duration::from_millis(200);
/// How far the clock of each instance is behind that of the one before.
const SKEW: Duration = Duration::from_millis(30);
/// Longer than the clocks differ, shorter than the time from one run to the next.
const MINIMUM: Duration = Duration::from_millis(150);
/// When the lock of an instance that died is free again.
const TTL: Duration = Duration::from_secs(1);
const INSTANCES: u32 = 3;
/// How many periods are booked.
const PERIODS: u64 = 12;
/// From which one on the first instance dies in a run.
const DIES_FROM: u64 = 3;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("scheduled_job: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let url = env::var("REDIS_URL").ok().filter(|url| !url.is_empty());
    let args: Vec<String> = env::args().collect();
    if let [_, word, number, first] = &*args
        && word == "instance"
    {
        let instance = Instance { number: number.parse()?, first: first.parse()?, process: true };
        let url = url.ok_or("an instance in a process of its own needs REDIS_URL")?;
        let place = Place::redis(url, instance.first)?;
        println!("skipped {}", instance.live(&place)?);
        return Ok(());
    }
    let first = period_of(SystemClock.unix_time()) + 1;
    let (place, skipped) = match url {
        None => {
            let place = Place::here();
            let skipped = in_threads(&place, first)?;
            (place, skipped)
        }
        Some(url) => {
            // Before any instance is started: a wrong address shows here.
            let place = Place::redis(url, first)?;
            on_one_thread(async { place.connect(0).await.map(drop) })?;
            let skipped = in_processes(first)?;
            (place, skipped)
        }
    };
    let report = on_one_thread(audit(&place, first, skipped))?;
    println!("{report}");
    Ok(())
}

/// Where locks and rows live.
enum Place {
    Here { store: Arc<MemoryStore>, rows: Arc<Rows> },
    Redis { url: String, job: String, rows: Arc<Rows> },
}

impl Place {
    fn here() -> Self {
        let store = MemoryStore::new(Arc::new(SystemClock), FenceSettings::default());
        Self::Here { store: Arc::new(store), rows: Arc::new(Rows::here()) }
    }

    fn redis(url: String, first: u64) -> Result<Self, Failure> {
        let job = format!("scheduled_job/{first}");
        let rows = Rows::on_redis(&rows::gate(&url)?, format!("{{{job}}}:rows"));
        Ok(Self::Redis { url, job, rows: Arc::new(rows) })
    }

    async fn connect(&self, instance: u32) -> Result<LockRuntime, Failure> {
        let builder: LockRuntimeBuilder =
            LockRuntime::builder().service(format!("instance-{instance}")).ttl(TTL);
        match self {
            Self::Here { store, .. } => Ok(builder.on_store(Arc::clone(store) as _)?),
            Self::Redis { url, .. } => {
                Ok(builder.connect(url).await.map_err(|error| format!("REDIS_URL: {error}"))?)
            }
        }
    }

    fn job(&self) -> &str {
        match self {
            Self::Here { .. } => "scheduled_job",
            Self::Redis { job, .. } => job,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Here { .. } => "in this process",
            Self::Redis { .. } => "in processes of their own",
        }
    }

    fn rows(&self) -> &Rows {
        match self {
            Self::Here { rows, .. } | Self::Redis { rows, .. } => rows,
        }
    }
}

/// One instance of the service.
struct Instance {
    number: u32,
    first: u64,
    process: bool,
}

/// How a run ended.
enum Ran {
    /// It booked what was due.
    Booked { last: u64 },
    /// The instance died in it.
    Died(Guard),
}

impl Instance {
    /// Lives until every period is booked, or until it dies; how often it skipped.
    fn live(&self, place: &Place) -> Result<usize, Failure> {
        let tokio = runtime::Builder::new_current_thread().enable_all().build()?;
        let (skipped, dead) = tokio.block_on(self.work(place))?;
        if let Some(guard) = dead {
            if self.process {
                std::process::abort();
            }
            // Like a crash: its tasks are never polled again, so the guard is not released.
            tokio.spawn(async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            });
        }
        tokio.shutdown_background();
        Ok(skipped)
    }

    async fn work(&self, place: &Place) -> Result<(usize, Option<Guard>), Failure> {
        let locks = place.connect(self.number).await?;
        let job = locks.lock(place.job())?.class("scheduled_job");
        let (mut skipped, last) = (0, self.first + PERIODS - 1);
        for period in self.first.. {
            SystemClock.sleep_until(SystemClock.now() + self.until_over(period)).await;
            // At the end each instance waits for the lock, and books what is left.
            let guard = if period <= last {
                job.acquire().min_hold(MINIMUM).try_acquire().await?
            } else {
                Some(job.acquire().wait_forever().await?)
            };
            let Some(guard) = guard else {
                skipped += 1;
                continue;
            };
            match self.run_once(guard, period.min(last), place.rows()).await? {
                Ran::Died(guard) => return Ok((skipped, Some(guard))),
                Ran::Booked { last: booked } if booked == last && period > last => break,
                Ran::Booked { .. } => {}
            }
        }
        let _ = locks.shutdown(Duration::from_secs(5)).await;
        Ok((skipped, None))
    }

    /// Books every period up to `due` that is not booked yet, also those that an earlier run left.
    async fn run_once(&self, guard: Guard, due: u64, rows: &Rows) -> Result<Ran, Failure> {
        let booked = rows.open(guard.stamp()).await?;
        if self.number == 0 && due >= self.first + DIES_FROM {
            return Ok(Ran::Died(guard));
        }
        let next = match booked.last() {
            Some(row) => Booking::of(row)?.to + 1,
            None => self.first,
        };
        if next <= due {
            let booking = Booking { instance: self.number, from: next, to: due };
            rows.append(guard.stamp(), &booking.to_string()).await?;
        }
        guard.release().await?;
        Ok(Ran::Booked { last: due.max(next - 1) })
    }

    /// How long it takes, by the clock of this instance, until a period is over.
    fn until_over(&self, period: u64) -> Duration {
        let over = PERIOD * u32::try_from(period + 1 - self.first).unwrap_or(u32::MAX);
        let begin = PERIOD.as_millis() * u128::from(self.first);
        let begin = Duration::from_millis(u64::try_from(begin).unwrap_or(u64::MAX));
        (begin + over + SKEW * self.number).saturating_sub(SystemClock.unix_time())
    }
}

fn period_of(unix_time: Duration) -> u64 {
    u64::try_from(unix_time.as_millis() / PERIOD.as_millis()).unwrap_or(u64::MAX)
}

/// The result of a run.
#[derive(Debug, PartialEq, Eq)]
struct Booking {
    instance: u32,
    from: u64,
    to: u64,
}

impl fmt::Display for Booking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.instance, self.from, self.to)
    }
}

impl Booking {
    fn of(row: &Row) -> Result<Self, Failure> {
        let parts: Vec<&str> = row.text.split(' ').collect();
        let [instance, from, to] = *parts else { return Err("a row is a booking".into()) };
        Ok(Self { instance: instance.parse()?, from: from.parse()?, to: to.parse()? })
    }
}

fn in_threads(place: &Place, first: u64) -> Result<usize, Failure> {
    thread::scope(|scope| {
        let live = |number| {
            let instance = Instance { number, first, process: false };
            scope.spawn(move || instance.live(place))
        };
        let fleet: Vec<_> = (0..INSTANCES).map(live).collect();
        fleet.into_iter().map(|one| one.join().map_err(|_| "an instance panicked")?).sum()
    })
}

fn in_processes(first: u64) -> Result<usize, Failure> {
    let start = |number: u32| {
        let mut command = Command::new(env::current_exe()?);
        command.args(["instance", &number.to_string(), &first.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()
    };
    let fleet: Vec<_> = (0..INSTANCES).map(start).collect::<Result<_, _>>()?;
    let mut skipped = 0;
    for (number, one) in fleet.into_iter().enumerate() {
        let output = one.wait_with_output()?;
        let told = String::from_utf8_lossy(&output.stdout);
        match told.trim().strip_prefix("skipped ") {
            Some(times) => skipped += times.parse::<usize>()?,
            None if number == 0 => {}
            None => return Err(format!("instance {number} ended with {}", output.status).into()),
        }
    }
    Ok(skipped)
}

/// Reads the rows under a lease of its own, and checks them.
async fn audit(place: &Place, first: u64, skipped: usize) -> Result<String, Failure> {
    let locks = place.connect(INSTANCES).await?;
    let guard = locks.lock(place.job())?.acquire().await?;
    let rows = place.rows().open(guard.stamp()).await?;
    guard.release().await?;
    let runs: Vec<(u64, Booking)> = rows
        .iter()
        .map(|row| Ok((row.fence, Booking::of(row)?)))
        .collect::<Result<_, Failure>>()?;
    let (Some((_, start)), Some((_, end))) = (runs.first(), runs.last()) else {
        return Err("broken: nothing ran".into());
    };
    if (start.from, end.to) != (first, first + PERIODS - 1) {
        return Err(format!("broken: booked {} to {}, not all", start.from, end.to).into());
    }
    for pair in runs.windows(2) {
        let [(fence, before), (next_fence, after)] = pair else { continue };
        if after.from != before.to + 1 {
            return Err(format!("broken: {after} does not follow {before}").into());
        }
        // A fence is the server's time in microseconds, give or take a block of 1024; the last run
        // of all has no minimum, but comes after one that had.
        let apart = Duration::from_micros(next_fence.saturating_sub(*fence));
        if apart + Duration::from_millis(5) < MINIMUM {
            return Err(format!("broken: {after} began {apart:?} after {before}").into());
        }
    }
    let successor = runs.iter().find(|(_, run)| run.instance != 0 && run.to >= first + DIES_FROM);
    let Some((fence, Booking { instance: successor, from, to })) = successor else {
        return Err("broken: nobody took over from the instance that died".into());
    };
    if runs.iter().any(|(_, run)| run.instance == 0 && run.to >= first + DIES_FROM) {
        return Err("broken: the instance that died went on".into());
    }
    let runs = runs.len();
    Ok(format!(
        "Scheduled job: {PERIODS} periods, {INSTANCES} instances {}\n\
         runs        {runs}, each with a greater fence, none within {MINIMUM:?} of another\n\
         skipped     {skipped} times: the lock was held, or kept closed\n\
         crash       instance 0 died in a run; instance {successor} booked {} periods with fence {fence}\n\
         All invariants hold.",
        place.name(),
        to + 1 - from,
    ))
}

fn on_one_thread<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}
