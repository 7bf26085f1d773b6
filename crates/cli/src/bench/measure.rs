use std::time::Duration;

use leasehold::{
    LockRuntime, ReentrantLock,
    store::FenceSettings,
    time::{Clock, Instant, SystemClock},
};
use tokio::task::JoinSet;

use crate::{args::ServerArgs, ending::Failure, server};

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

/// How often it was done, and in which time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measured {
    pub(super) count: u64,
    pub(super) time: Duration,
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
    pub(super) async fn connect(args: &ServerArgs) -> Result<Self, Failure> {
        Ok(Self { one: runtime(args).await?, other: runtime(args).await? })
    }

    /// The locks of this bench: no other one has them.
    fn lock(&self, of: &LockRuntime, number: usize) -> Result<ReentrantLock, Failure> {
        of.lock(format!("leasehold-bench/{}/{number}", self.one.id())).map_err(Failure::usage)
    }
}

/// What it leaves on the server is gone after an hour.
async fn runtime(args: &ServerArgs) -> Result<LockRuntime, Failure> {
    let (builder, address) = server::settings(args, "leasehold-bench")?;
    let fencing = FenceSettings::default().retention(FenceSettings::MIN_RETENTION);
    server::connect(builder.fencing(fencing.map_err(Failure::usage)?), address).await
}

impl BenchPart {
    pub(super) const ALL: [Self; 5] =
        [Self::RoundTrip, Self::Pairs, Self::ManyPairs, Self::HandOvers, Self::LocalHandOvers];

    /// What it is called.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trips, one at a time",
            Self::Pairs => "pairs of acquire and release, one at a time",
            Self::ManyPairs => "pairs on 64 locks at once",
            Self::HandOvers => "hand-overs between two processes",
            Self::LocalHandOvers => "hand-overs between 8 tasks of a process",
        }
    }

    /// Its name for machines.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::RoundTrip => "round_trips",
            Self::Pairs => "pairs",
            Self::ManyPairs => "pairs_on_64_locks",
            Self::HandOvers => "hand_overs_between_processes",
            Self::LocalHandOvers => "hand_overs_between_tasks",
        }
    }

    /// Does it until then.
    pub(super) async fn measure(
        self,
        runtimes: &Runtimes,
        until: Instant,
    ) -> Result<Measured, Failure> {
        let began = SystemClock.now();
        let (one, other) = (&runtimes.one, &runtimes.other);
        let count = match self {
            Self::RoundTrip => looks(one, runtimes.lock(one, 0)?, until).await?,
            Self::Pairs => pairs(runtimes.lock(one, 0)?, until).await?,
            Self::ManyPairs => {
                let locks: Result<Vec<_>, _> =
                    (0..AT_ONCE).map(|number| runtimes.lock(one, number)).collect();
                together(locks?, until).await?
            }
            Self::HandOvers => {
                together(vec![runtimes.lock(one, 0)?, runtimes.lock(other, 0)?], until).await?
            }
            Self::LocalHandOvers => together(vec![runtimes.lock(one, 0)?; TASKS], until).await?,
        };
        Ok(Measured { count, time: SystemClock.now().saturating_since(began) })
    }
}

async fn looks(locks: &LockRuntime, lock: ReentrantLock, until: Instant) -> Result<u64, Failure> {
    let mut count = 0;
    while SystemClock.now() < until {
        locks.inspect(lock.name()).await?;
        count += 1;
    }
    Ok(count)
}

async fn pairs(lock: ReentrantLock, until: Instant) -> Result<u64, Failure> {
    let mut count = 0;
    while SystemClock.now() < until {
        let guard = lock.acquire().await?;
        guard
            .release()
            .await
            .map_err(|error| Failure::new(crate::ending::Cause::Unreachable, error))?;
        count += 1;
    }
    Ok(count)
}

/// Pairs of a task for each of the locks.
async fn together(locks: Vec<ReentrantLock>, until: Instant) -> Result<u64, Failure> {
    let mut tasks = JoinSet::new();
    for lock in locks {
        tasks.spawn(pairs(lock, until));
    }
    let mut count = 0;
    while let Some(done) = tasks.join_next().await {
        count += done.map_err(|error| Failure::new(crate::ending::Cause::Unreachable, error))??;
    }
    Ok(count)
}
