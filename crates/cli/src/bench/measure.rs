use leasehold::{
    LockRuntime, ReentrantLock,
    store::FenceSettings,
    time::{Clock, Instant, SystemClock},
};
use tokio::task::JoinSet;

use crate::{
    args::ServerArgs,
    ending::{Cause, CliError},
    server,
};

/// One thing that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BenchPart {
    /// Looks at a lock, one after the other: a command that does next to nothing.
    RoundTrip,
    /// Pairs of acquire and release, one after the other.
    Pairs,
    /// The same on 64 locks at once.
    ManyPairs,
    /// One lock passes between two processes.
    HandOvers,
    /// One lock passes between eight tasks of a process.
    LocalHandOvers,
}

/// Two runtimes, as of two processes.
#[derive(Debug)]
pub(super) struct Runtimes {
    one: LockRuntime,
    other: LockRuntime,
}

const AT_ONCE: usize = 64;
const TASKS: usize = 8;

impl Runtimes {
    pub(super) async fn connect(args: &ServerArgs) -> Result<Self, CliError> {
        Ok(Self { one: runtime(args).await?, other: runtime(args).await? })
    }

    /// The locks of this bench: no other one has them.
    fn lock(&self, of: &LockRuntime, number: usize) -> Result<ReentrantLock, CliError> {
        of.lock(format!("leasehold-bench/{}/{number}", self.one.id())).map_err(CliError::usage)
    }
}

/// What it leaves on the server is gone after an hour.
async fn runtime(args: &ServerArgs) -> Result<LockRuntime, CliError> {
    let (builder, address) = server::settings(args, "leasehold-bench")?;
    let fencing = FenceSettings::default().retention(FenceSettings::MIN_RETENTION);
    server::connect_serving(builder.fencing(fencing.map_err(CliError::usage)?), address).await
}

/// All parts, each with its name in JSON and in words.
pub(super) const PARTS: [(BenchPart, &str, &str); 5] = [
    (BenchPart::RoundTrip, "round_trips", "round trips, one at a time"),
    (BenchPart::Pairs, "pairs", "pairs of acquire and release, one at a time"),
    (BenchPart::ManyPairs, "pairs_on_64_locks", "pairs on 64 locks at once"),
    (BenchPart::HandOvers, "hand_overs_between_processes", "hand-overs between two processes"),
    (
        BenchPart::LocalHandOvers,
        "hand_overs_between_tasks",
        "hand-overs between 8 tasks of a process",
    ),
];

impl BenchPart {
    /// Does it until then. Returns how often a second.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub(super) async fn measure(
        self,
        runtimes: &Runtimes,
        until: Instant,
    ) -> Result<f64, CliError> {
        let began = SystemClock.now();
        let (one, other) = (&runtimes.one, &runtimes.other);
        let lock = runtimes.lock(one, 0)?;
        let count = match self {
            Self::RoundTrip => looks(one, &lock, until).await?,
            Self::Pairs => pairs(lock, until).await?,
            Self::ManyPairs => {
                let locks = (0..AT_ONCE).map(|number| runtimes.lock(one, number));
                together(locks.collect::<Result<_, _>>()?, until).await?
            }
            Self::HandOvers => together(vec![lock, runtimes.lock(other, 0)?], until).await?,
            Self::LocalHandOvers => together(vec![lock; TASKS], until).await?,
        };
        Ok(count as f64 / SystemClock.now().saturating_since(began).as_secs_f64())
    }
}

async fn looks(locks: &LockRuntime, lock: &ReentrantLock, until: Instant) -> Result<u64, CliError> {
    let mut count = 0;
    while SystemClock.now() < until {
        locks.inspect(lock.name()).await?;
        count += 1;
    }
    Ok(count)
}

async fn pairs(lock: ReentrantLock, until: Instant) -> Result<u64, CliError> {
    let mut count = 0;
    while SystemClock.now() < until {
        let released = lock.acquire().await?.release().await;
        released.map_err(|error| CliError::new(Cause::Unreachable, error))?;
        count += 1;
    }
    Ok(count)
}

/// Pairs of a task for each of the locks.
async fn together(locks: Vec<ReentrantLock>, until: Instant) -> Result<u64, CliError> {
    let mut tasks: JoinSet<_> = locks.into_iter().map(|lock| pairs(lock, until)).collect();
    let mut count = 0;
    while let Some(done) = tasks.join_next().await {
        count += done.map_err(|error| CliError::new(Cause::Unreachable, error))??;
    }
    Ok(count)
}
