//! One of several instances leads, for as long as its lease is held; the others wait in the queue.
//!
//! Four candidates, each with a lock runtime and a thread of its own, append to a list that only
//! the newest leader may write. The first term of each ends in another way: one stalls for longer
//! than its lease and then writes too late, one is deposed by an operator, one resigns because its
//! process drains, one at the end of its term. `lost()` makes a leader step down, and `draining()`
//! makes it resign. The next in the queue takes over, and shuts its
//! predecessor out of the list before it writes anything. At the end the program checks that the
//! rows of the terms do not mix, and that the late write was refused.
//!
//! `cargo run --example leader` needs nothing but Rust; with `REDIS_URL` set, locks and list live
//! on that server.

mod rows;

use std::{
    collections::BTreeSet,
    env,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use leasehold::{
    Guard, LockRuntime, RuntimeId,
    error::AcquireError,
    fencing::{GateError, StaleFence},
    store::{FenceSettings, MemoryStore},
    time::{Clock, SystemClock},
};
use rows::{Failure, Row, Rows};
use tokio::runtime;

/// A leader that has died is replaced after this time.
const TTL: Duration = Duration::from_millis(500);
/// The time between two writes of a leader.
const PAUSE: Duration = Duration::from_millis(10);
const CANDIDATES: u32 = 4;
/// After how many writes of a term something happens to its leader.
const TERM: usize = 5;
/// How many rows are written in all.
const ROWS: usize = 60;

fn main() -> ExitCode {
    match run() {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("leader: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String, Failure> {
    let election = Election::new(env::var("REDIS_URL").ok().filter(|url| !url.is_empty()))?;
    thread::scope(|scope| {
        let election = &election;
        let live = |number| {
            scope.spawn(move || {
                on_one_thread(Candidate { number, election, rows: election.rows()? }.live())
            })
        };
        let candidates: Vec<_> = (0..CANDIDATES).map(live).collect();
        for candidate in candidates {
            candidate.join().map_err(|_| "a candidate panicked")??;
        }
        Ok::<_, Failure>(())
    })?;
    on_one_thread(election.audit())
}

/// What all candidates share.
struct Election {
    url: Option<String>,
    store: Arc<MemoryStore>,
    name: String,
    /// The list in this process, where it is there.
    here: Rows,
    /// The fence of the newest leader that has opened the list.
    newest: AtomicU64,
    refused: AtomicUsize,
    /// How many terms ended with the loss of their lease.
    lost: AtomicUsize,
    /// How many leaders resigned because their process drained.
    drained: AtomicUsize,
}

impl Election {
    fn new(url: Option<String>) -> Result<Self, Failure> {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock), FenceSettings::default()));
        // The name is unique: copies of the program do not meet.
        let name = format!("leader/{}", unique(&store)?);
        let (newest, refused, lost, drained) = Default::default();
        Ok(Self { url, store, name, here: Rows::here(), newest, refused, lost, drained })
    }

    /// The list, on connections of its own: a candidate that stalls does not stall the others.
    fn rows(&self) -> Result<Rows, Failure> {
        match &self.url {
            None => Ok(self.here.clone()),
            Some(url) => Ok(Rows::on_redis(&rows::gate(url)?, format!("{{{}}}:rows", self.name))),
        }
    }

    async fn connect(&self, number: u32) -> Result<LockRuntime, Failure> {
        let builder = LockRuntime::builder().service(format!("candidate-{number}")).ttl(TTL);
        match &self.url {
            None => Ok(builder.on_store(Arc::clone(&self.store) as _)?),
            Some(url) => {
                Ok(builder.connect(url).await.map_err(|error| format!("REDIS_URL: {error}"))?)
            }
        }
    }

    /// Reads the rows under a lease of its own, and checks them.
    async fn audit(&self) -> Result<String, Failure> {
        let locks = self.connect(CANDIDATES).await?;
        let guard = locks.lock(&self.name)?.acquire().await?;
        let rows = self.rows()?.open(guard.stamp()).await?;
        let _ = guard.release().await;
        let (mut terms, mut leaders) = (Vec::<&Row>::new(), BTreeSet::new());
        for row in &rows {
            leaders.insert(row.text.as_str());
            match terms.last() {
                Some(term) if term.fence == row.fence && term.text == row.text => {}
                Some(term) if term.fence >= row.fence => {
                    return Err(format!("broken: {row:?} was accepted after {term:?}").into());
                }
                _ => terms.push(row),
            }
        }
        let [refused, lost, drained] =
            [&self.refused, &self.lost, &self.drained].map(|count| count.load(Ordering::SeqCst));
        let candidates = usize::try_from(CANDIDATES)?;
        if rows.len() < ROWS || leaders.len() != candidates {
            return Err(format!("broken: {} rows of {} leaders", rows.len(), leaders.len()).into());
        }
        if refused != 1 || lost + drained < 3 {
            return Err(format!(
                "broken: {refused} late writes refused, {lost} terms lost, {drained} drained"
            )
            .into());
        }
        Ok(format!(
            "Leader: {CANDIDATES} candidates, locks and list {}\n\
             rows        {}, of one leader at a time, under fences that never fall\n\
             terms       {}, {lost} of them ended by a loss of the lease, {drained} by a drain\n\
             late write  refused: its leader had stalled for longer than its lease\n\
             All invariants hold.",
            if self.url.is_some() { "on Redis" } else { "in this process" },
            rows.len(),
            terms.len(),
        ))
    }
}

/// One instance of the service.
struct Candidate<'a> {
    number: u32,
    election: &'a Election,
    rows: Rows,
}

/// How a term ended.
enum Term {
    /// There is more to write, for another leader.
    Over,
    /// All is written, or the candidate was shut down.
    Last,
}

impl Candidate<'_> {
    /// Stands for election until all is written.
    async fn live(self) -> Result<(), Failure> {
        let locks = self.election.connect(self.number).await?;
        let lock = locks.lock(&self.election.name)?.class("leader");
        let mut is_first = true;
        loop {
            // Followers wait in the queue: no follower polls, and the next one is woken. Nothing is
            // wrong with a wait of days, so none is reported.
            let guard = match lock.acquire().wait_forever().blocked_after(Duration::MAX).await {
                Ok(guard) => guard,
                // The server has not answered for 5 s: wait on. In an outage that lasts, the next acquire
                // fails within 100 ms.
                Err(AcquireError::Unavailable(_)) => {
                    SystemClock.sleep_until(SystemClock.now() + Duration::from_secs(1)).await;
                    continue;
                }
                Err(AcquireError::ShutDown { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            match self.lead(&locks, guard, &mut is_first).await? {
                Term::Over => {}
                Term::Last => break,
            }
        }
        let _ = locks.shutdown(Duration::from_secs(5)).await;
        Ok(())
    }

    /// Writes until the term is over: the lease is lost, or it resigns.
    async fn lead(
        &self,
        locks: &LockRuntime,
        guard: Guard,
        is_first: &mut bool,
    ) -> Result<Term, Failure> {
        let election = self.election;
        // Before anything else: from now on the list refuses all former leaders.
        let mut written = match self.rows.open(guard.stamp()).await {
            Ok(rows) => rows.len(),
            Err(failure) => return self.refused(&failure).map(|()| Term::Over),
        };
        election.newest.fetch_max(guard.fence().get(), Ordering::SeqCst);
        let (mut lost, mut draining) = (guard.lost(), locks.draining());
        let name = self.number.to_string();
        for turn in 0..100 * TERM {
            if written >= ROWS && !*is_first {
                return Ok(resign(guard, Term::Last).await);
            }
            if turn == TERM {
                // This happens once to each candidate.
                let is_first = std::mem::take(is_first);
                match self.number {
                    0 if is_first => return self.stall(&guard).await,
                    1 if is_first => depose(locks, election),
                    2 if is_first => drain(locks),
                    _ => return Ok(resign(guard, Term::Over).await),
                }
            }
            tokio::select! {
                biased;
                // First: a leader that has lost its lease writes nothing more.
                _ = &mut lost => return Ok(self.step_down()),
                done = self.rows.append(guard.stamp(), &name) => match done {
                    Ok(()) => written += 1,
                    Err(failure) => return self.refused(&failure).map(|()| Term::Over),
                },
            }
            tokio::select! {
                biased;
                _ = &mut lost => return Ok(self.step_down()),
                () = &mut draining => {
                    election.drained.fetch_add(1, Ordering::SeqCst);
                    return Ok(resign(guard, Term::Last).await);
                }
                () = SystemClock.sleep_until(SystemClock.now() + PAUSE) => {}
            }
        }
        Err("broken: a leader was neither deposed nor told of a drain".into())
    }

    fn step_down(&self) -> Term {
        self.election.lost.fetch_add(1, Ordering::SeqCst);
        Term::Over
    }

    /// Blocks its thread until another candidate leads, and then writes.
    async fn stall(&self, guard: &Guard) -> Result<Term, Failure> {
        let own = guard.fence().get();
        while self.election.newest.load(Ordering::SeqCst) <= own {
            block(PAUSE);
        }
        self.election.lost.fetch_add(1, Ordering::SeqCst);
        match self.rows.append(guard.stamp(), &self.number.to_string()).await {
            Ok(()) => Err("broken: a leader wrote after its successor had taken over".into()),
            Err(failure) => {
                self.refused(&failure)?;
                self.election.refused.fetch_add(1, Ordering::SeqCst);
                Ok(Term::Over)
            }
        }
    }

    /// A refusal by the list is right here; any other error is a failure.
    fn refused(&self, failure: &Failure) -> Result<(), Failure> {
        let is_stale = failure.is::<StaleFence>()
            || matches!(failure.downcast_ref(), Some(GateError::Stale(_)));
        if is_stale { Ok(()) } else { Err(format!("candidate {}: {failure}", self.number).into()) }
    }
}

/// Ends the term. What was written stays written if the server does not confirm it in time: then the
/// lock is free after the ttl at the latest.
async fn resign(guard: Guard, term: Term) -> Term {
    let _ = guard.release().await;
    term
}

/// An operator ends the leader's lease.
fn depose(locks: &LockRuntime, election: &Election) {
    let (locks, name) = (locks.clone(), election.name.clone());
    drop(tokio::spawn(async move { locks.force_release(name).await }));
}

/// The process is to end, as after a signal.
fn drain(locks: &LockRuntime) {
    let locks = locks.clone();
    drop(tokio::spawn(async move { locks.drain(Duration::from_secs(60)).await }));
}

/// A name that no other run of the program has.
fn unique(store: &Arc<MemoryStore>) -> Result<RuntimeId, Failure> {
    Ok(LockRuntime::builder().on_store(Arc::clone(store) as _)?.id())
}

/// Blocking code, which a service should not have.
#[expect(clippy::disallowed_methods, reason = "only this stalls a thread")]
fn block(time: Duration) {
    thread::sleep(time);
}

fn on_one_thread<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}
