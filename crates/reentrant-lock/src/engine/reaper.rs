use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_core::{
    Clock, Entropy, Instant, LockName, LockStore,
    metric::{Metrics, ReleaseOutcome},
};
use tokio::{
    select,
    sync::{Notify, mpsc},
    task::JoinSet,
};

use super::{
    backoff::Backoff,
    executor::Executor,
    job::{Job, Told},
};

/// The way to hand work to the reaper's task: never blocks, never panics, works outside of tokio.
///
/// The task ends when the last of these is dropped and the work is done.
#[derive(Debug, Clone)]
pub(crate) struct Reaper {
    jobs: mpsc::UnboundedSender<(u64, Job)>,
    pending: Arc<Pending>,
}

/// The number of a pending job; `None` when there are too many to be remembered.
#[derive(Debug, Clone, Copy)]
#[must_use = "an announced job is to be handed over or retracted"]
pub(crate) struct Announced(Option<u64>);

/// The jobs that are not done, and the locks that stay closed until they are.
#[derive(Debug, Default)]
struct Pending {
    jobs: Mutex<Numbered>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Numbered {
    last: u64,
    closed: BTreeMap<u64, Option<LockName>>,
    /// The same of turns that end.
    ending: BTreeMap<u64, Option<LockName>>,
    /// The locks that stay closed for good, from a shutdown on.
    failed: Option<Vec<LockName>>,
}

impl Reaper {
    /// More jobs than this are not taken: their leases end with their ttl.
    const MOST: usize = 64 * 1024;

    pub(crate) fn start(
        executor: &Executor,
        store: Arc<dyn LockStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (jobs, incoming) = mpsc::unbounded_channel();
        let pending = Arc::new(Pending::default());
        let worker = Worker {
            incoming,
            running: JoinSet::new(),
            context: Arc::new(Context { store, clock, entropy, metrics }),
            pending: Arc::clone(&pending),
            _executor: executor.clone(),
        };
        drop(executor.handle().spawn(worker.run()));
        Self { jobs, pending }
    }

    /// Hands a job over.
    pub(crate) fn take(&self, job: Job) {
        self.take_announced(self.announce(&job), job);
    }

    /// Counts a job as pending that may be handed over later.
    pub(crate) fn announce(&self, job: &Job) -> Announced {
        Announced(self.pending.add(job))
    }

    /// Counts the end of a turn as pending that the runtime itself brings about.
    pub(crate) fn announce_end(&self, job: &Job) -> Announced {
        Announced(Some(self.pending.add_end(job)))
    }

    /// An announced job was tried in another way, and came to `outcome`.
    pub(crate) fn retract(&self, announced: Announced, job: &Job, outcome: ReleaseOutcome) {
        match announced.0 {
            Some(number) => self.pending.settle(number, outcome),
            None if outcome == ReleaseOutcome::Unconfirmed => {
                self.pending.lock().failed(job.keeps_closed());
            }
            None => {}
        }
    }

    /// Hands an announced job over.
    pub(crate) fn take_announced(&self, announced: Announced, job: Job) {
        let Some(number) = announced.0 else {
            self.pending.lock().failed(job.keeps_closed());
            let _: ReleaseOutcome = job.done(None);
            return;
        };
        job.taken_over();
        if let Err(mpsc::error::SendError((number, job))) = self.jobs.send((number, job)) {
            // The tokio runtime has stopped; the ttl is the backstop.
            let outcome = job.done(None);
            self.pending.settle(number, outcome);
        }
    }

    /// How many jobs are not done.
    pub(crate) fn pending(&self) -> usize {
        let jobs = self.pending.lock();
        jobs.closed.len() + jobs.ending.len()
    }

    /// From now on the locks are remembered whose server could not be told.
    pub(crate) fn remember_failures(&self) {
        self.pending.lock().failed.get_or_insert_default();
    }

    /// Waits until every job is done, at most until `deadline`; yields the locks that stay closed.
    pub(crate) async fn drain(&self, clock: &dyn Clock, deadline: Instant) -> Vec<LockName> {
        loop {
            let mut changed = pin!(self.pending.changed.notified());
            // Registered before the look, so that no change is missed in between.
            changed.as_mut().enable();
            if let Some(left) = self.pending.left(clock.now() >= deadline) {
                return left;
            }
            select! {
                biased;
                () = changed => {}
                () = clock.sleep_until(deadline) => {}
            }
        }
    }
}

impl Pending {
    fn add(&self, job: &Job) -> Option<u64> {
        let mut jobs = self.lock();
        if jobs.closed.len() >= Reaper::MOST {
            return None;
        }
        let number = jobs.next();
        jobs.closed.insert(number, job.keeps_closed());
        Some(number)
    }

    fn add_end(&self, job: &Job) -> u64 {
        let mut jobs = self.lock();
        let number = jobs.next();
        jobs.ending.insert(number, job.keeps_closed());
        number
    }

    fn settle(&self, number: u64, outcome: ReleaseOutcome) {
        let mut jobs = self.lock();
        let lock = jobs.closed.remove(&number).or_else(|| jobs.ending.remove(&number)).flatten();
        if outcome == ReleaseOutcome::Unconfirmed {
            jobs.failed(lock);
        }
        drop(jobs);
        self.changed.notify_waiters();
    }

    /// The locks that stay closed, once every job is done or when it is `time` to say so.
    fn left(&self, time: bool) -> Option<Vec<LockName>> {
        let jobs = self.lock();
        let pending = jobs.closed.values().chain(jobs.ending.values());
        if pending.clone().next().is_some() && !time {
            return None;
        }
        let failed = jobs.failed.iter().flatten();
        let closed: BTreeSet<_> = pending.flatten().chain(failed).cloned().collect();
        Some(closed.into_iter().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Numbered> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Numbered {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn failed(&mut self, lock: Option<LockName>) {
        if let (Some(failed), Some(lock)) = (&mut self.failed, lock)
            && failed.len() < Reaper::MOST
        {
            failed.push(lock);
        }
    }
}

#[derive(Debug)]
struct Worker {
    incoming: mpsc::UnboundedReceiver<(u64, Job)>,
    running: JoinSet<()>,
    context: Arc<Context>,
    pending: Arc<Pending>,
    // Keeps a thread of its own alive until the last job is done.
    _executor: Executor,
}

#[derive(Debug)]
struct Context {
    store: Arc<dyn LockStore>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    metrics: Arc<Metrics>,
}

impl Worker {
    /// How many jobs are on their way at once.
    const AT_ONCE: usize = 64;

    async fn run(mut self) {
        loop {
            select! {
                biased;
                Some(_) = self.running.join_next(), if !self.running.is_empty() => {}
                job = self.incoming.recv(), if self.running.len() < Self::AT_ONCE => {
                    let Some((number, job)) = job else { break };
                    let settling = Settling::new(&self.pending, number, job);
                    self.running.spawn(Arc::clone(&self.context).run(settling));
                }
            }
        }
        while self.running.join_next().await.is_some() {}
    }
}

/// Settles a job when it is over, also by a panic or the end of its tokio runtime.
#[derive(Debug)]
struct Settling {
    pending: Arc<Pending>,
    number: u64,
    job: Job,
    told: Option<Told>,
}

impl Settling {
    fn new(pending: &Arc<Pending>, number: u64, job: Job) -> Self {
        Self { pending: Arc::clone(pending), number, job, told: None }
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        // First: what follows from it is pending before it is not.
        let outcome = self.job.done(self.told);
        self.pending.settle(self.number, outcome);
        self.job.tell(self.told);
    }
}

impl Context {
    async fn run(self: Arc<Self>, mut settling: Settling) {
        settling.told = self.finish(&mut settling.job).await;
    }

    /// Tries until the server has answered; `None` when it refuses for good, or has forgotten by
    /// itself what the job is about.
    async fn finish(&self, job: &mut Job) -> Option<Told> {
        let mut pauses = Backoff::new(Arc::clone(&self.entropy));
        loop {
            if self.clock.now() >= job.expires {
                return None;
            }
            match job.attempt(&*self.store, &*self.clock).await {
                Ok(told) => return Some(told),
                Err(error) => {
                    self.metrics.store().error(error.kind());
                    if !error.kind().is_transient() {
                        return None;
                    }
                }
            }
            let pause = self.clock.now() + pauses.next_pause();
            self.clock.sleep_until(pause.min(job.expires)).await;
        }
    }
}
