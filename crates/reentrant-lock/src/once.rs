//! Work that is done once: one caller at a time runs it, and after a success nobody does for a while.

use std::{fmt, future::Future, ops::Deref, sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, Mode, RuntimeLabel, StoreError, StoreErrorKind, Ttl,
    backoff,
    lease::LossReason,
    store::{Inspection, LeaseRecord},
};
use tokio::select;

use crate::{
    acquire::{Acquire, How},
    durations::{LOG_PAUSE, SHORT_PAUSES},
    engine::Engine,
    error::{AcquireError, LeaseLost, OptionsError, ReleaseError, WithError},
    guard::{Guard, Released},
    lease::{Lease, run_while_held},
    lock::ReentrantLock,
    queue::TurnId,
    timing::closed_for,
    wait::{failed, unavailable},
};

/// Work that is done once: the first caller runs, and all others are duplicates while it runs and
/// for a window after its success.
///
/// The run holds the lock of the same name. A success keeps that lock closed for the window. If the
/// run fails, is dropped or loses its lease, the lock opens again; if its process dies, the lock
/// opens after the ttl.
///
/// Nothing can promise that work is done *exactly* once: a process may die, or lose its lease,
/// after the work is done and before its success is reported. Give [`Lease::stamp`] to the
/// storage, or write under the key of the request, so that a second run finds the result of the
/// first.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use leasehold::{LockRuntime, once::OnceOutcome};
///
/// let locks = LockRuntime::embedded()?;
/// let form = locks.once("submit/user-7/form-3")?.window(Duration::from_secs(600));
/// for _ in 0..2 {
///     match form.run(async |lease| Ok::<_, std::io::Error>(lease.fence())).await? {
///         OnceOutcome::Ran(fence) => println!("done under fence {fence}"),
///         OnceOutcome::Duplicate(first) => println!("{first}"), // by whom, and since when
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing runs unless it is run or begun"]
pub struct Once {
    how: How,
    window: Duration,
}

impl Once {
    /// A run of a runtime; services ask their `LockRuntime` for one.
    #[doc(hidden)]
    pub fn new(engine: Arc<Engine>, name: LockName) -> Self {
        // An idle lock would look like a run to others, under the label of an earlier one.
        let lock = ReentrantLock::new(engine, name).keep_idle(Duration::ZERO);
        Self { how: How::of(lock), window: Duration::from_secs(60) }
    }

    /// Sets for how long after a success the lock stays closed, up to 24 h, on a quorum up to its
    /// longest ttl; zero opens it at once. Default: 60 s.
    pub fn window(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// Sets how long the run's lease lives without renewal, 100 ms to 24 h: after a crash the
    /// lock opens when it is over. Default: the runtime's.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.how.ttl = Some(ttl);
        self
    }

    /// Sets what duplicates see as the holder, such as the id of a request; cut at 200 bytes.
    /// Default: the runtime's label.
    pub fn label(mut self, label: impl AsRef<str>) -> Self {
        self.how.label = Some(RuntimeLabel::new(label));
        self
    }

    /// Counts the run under a class in metrics. Default: `default`.
    pub fn class(mut self, class: impl AsRef<str>) -> Self {
        self.how.lock = self.how.lock.class(class);
        self
    }

    /// Returns the name of the run, and of its lock.
    pub fn name(&self) -> &LockName {
        &self.how.lock.name
    }

    /// Begins the run if the lock is open; otherwise returns who came first. Answers within one
    /// command timeout, and never waits for a run to end.
    ///
    /// Every call is a caller of its own, also within an owner's scope and within one task.
    ///
    /// # Errors
    ///
    /// - [`AcquireError::Unavailable`] when the server did not answer or refused, or could not say
    ///   in time whether the lock is open. Nothing was begun; what the server may still execute is
    ///   withdrawn.
    /// - [`AcquireError::Store`] when waiting does not help, as for a missing right.
    /// - [`AcquireError::Options`] when ttl, window or class are out of range.
    /// - [`AcquireError::ShutDown`] when the runtime was shut down.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes its effect back: the lock is open again.
    pub async fn begin(&self) -> Result<Begun, AcquireError> {
        let ReentrantLock { engine, name, .. } = &self.how.lock;
        if let Err(option) = self.check_window() {
            return Err(AcquireError::Options { lock: name.clone(), option });
        }
        let clock = &engine.clock;
        let started = clock.now();
        let gives_up = started + engine.timing.command_timeout;
        let mut failures = 0;
        while clock.now() < gives_up {
            // An owner of its own: it enters nothing that the caller has already.
            let owner = engine.owner();
            let acquire = Acquire::new(self.how.clone()).owner(&owner);
            // A second try may begin late: dropped in time, it takes back what it came to.
            let tried = select! {
                biased;
                tried = acquire.try_acquire() => tried?,
                () = clock.sleep_until(gives_up) => break,
            };
            if let Some(guard) = tried {
                return Ok(Begun::First(OnceGuard { guard, window: self.window }));
            }
            if let Some(record) = self.look(gives_up).await? {
                return Ok(Begun::Duplicate(Duplicate::of(name, record)));
            }
            // The lock was closed, and opened again before the look showed who had closed it.
            let pause = backoff(SHORT_PAUSES, failures, engine.entropy.fraction());
            failures += 1;
            clock.sleep_until(gives_up.min(clock.now() + pause)).await;
        }
        if engine.outages().state().has_been_silent_since(started) {
            return Err(unavailable(engine, name, started, None));
        }
        Err(failed(engine, name, started, unsettled()))
    }

    /// Runs a closure's future if the lock is open, and closes the lock for the window if it
    /// succeeds; otherwise says at once who came first.
    ///
    /// Before every poll of the future the clock is checked; when the lease is lost the future is
    /// dropped where it stands. An error or a panic of the future opens the lock.
    ///
    /// Work that ended while its lease was believed is done: its value is returned, also when the
    /// server has not confirmed in time that the lock is closed, and it may open with the ttl. A
    /// warning in the log names the run: within 10 s one warning for each name, and for at most
    /// eight names. If your code must know, use [`begin`](Self::begin) and
    /// [`succeed`](OnceGuard::succeed).
    ///
    /// # Errors
    ///
    /// - [`WithError::Acquire`] when the run could not begin; the closure was not called.
    /// - [`WithError::Lost`] when the lease was lost before the future ended with a value.
    /// - [`WithError::Body`] with the closure's own error; the lock is open again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the closure's and opens the lock, unless the closure's future had
    /// succeeded: then the lock stays closed.
    pub async fn run<T, E, F>(
        &self,
        body: impl FnOnce(Lease) -> F,
    ) -> Result<OnceOutcome<T>, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let run = match self.begin().await? {
            Begun::First(run) => run,
            Begun::Duplicate(duplicate) => return Ok(OnceOutcome::Duplicate(duplicate)),
        };
        let lease = &run.guard.lease;
        match run_while_held(lease.until_lost(), || lease.loss(), body(lease.clone())).await {
            Ok(Ok(value)) => {
                let lease = run.id();
                // The work is done, whatever the server says.
                if let Err(error) = run.succeed().await {
                    warn_of(&self.how.lock.engine, lease, &error);
                }
                Ok(OnceOutcome::Ran(value))
            }
            Ok(Err(error)) => {
                // The closure's error wins.
                let _: Result<_, ReleaseError> = run.fail().await;
                Err(WithError::Body(error))
            }
            Err(lost) => Err(WithError::Lost(lost)),
        }
    }

    fn check_window(&self) -> Result<(), OptionsError> {
        if self.window > Ttl::MAX {
            return Err(OptionsError::Window);
        }
        let longest = self.how.lock.engine.store.longest_ttl();
        OptionsError::check_kept("a window", self.window, longest)
    }

    /// The run that is under way, or has succeeded; `None` when the lock is open, or about to be.
    async fn look(&self, deadline: Instant) -> Result<Option<LeaseRecord>, AcquireError> {
        let ReentrantLock { engine, name, .. } = &self.how.lock;
        let started = engine.clock.now();
        let looked = engine.inspect_until(name, started, deadline).await;
        let record = match looked.map_err(|error| failed(engine, name, started, error))? {
            Inspection::Held(record) => record,
            Inspection::Free { .. } => return Ok(None),
        };
        // Of this very process: it has ended, or never began, and that is on its way to the server.
        let turn = TurnId { id: record.id, first: record.fence };
        let is_ending = !record.kept
            && engine.look(name, Mode::Write, |state| state.is_ending(turn)) == Some(true);
        Ok((!is_ending).then_some(record))
    }
}

/// Other runs begin and fail so fast that no look showed one.
fn unsettled() -> StoreError {
    StoreError::new(
        StoreErrorKind::Definite,
        "whether the lock is open could not be found out in time; nothing was begun",
        "try again: a run is just ending and the server has not answered that yet, or others begin \
         and end in quick succession",
    )
    .as_answer()
}

/// Warns that a run succeeded, but that its lock may open before the window is over.
fn warn_of(engine: &Engine, lease: AcquisitionId, error: &ReleaseError) {
    let (lock, fence, cause) = match error {
        ReleaseError::Lost(LeaseLost { lock, fence, .. }) => (lock, fence, None),
        ReleaseError::Unconfirmed { lock, fence, error, .. } => (lock, fence, Some(error)),
    };
    let now = engine.clock.now();
    let left_out = engine.reports.lock().unconfirmed.take(lock, now, LOG_PAUSE);
    let Some(left_out) = left_out else { return };
    tracing::warn!(
        %lock, %lease, %fence, left_out,
        cause = cause.map(tracing::field::display),
        "the work is done, and the server has not confirmed that the lock stays closed: another run may \
         begin before the window is over"
    );
}

/// What beginning a run came to.
#[derive(Debug)]
#[must_use = "a run that is dropped counts as failed"]
pub enum Begun {
    /// The caller is the first, and runs.
    First(OnceGuard),
    /// Another caller came first.
    Duplicate(Duplicate),
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it says whether the work was done here"]
pub enum OnceOutcome<T> {
    /// The work was done here. The lock is closed for the window; if the success never reaches the
    /// server, until the lease's ttl is over.
    Ran(T),
    /// Another caller came first; nothing was done here.
    Duplicate(Duplicate),
}

impl<T> OnceOutcome<T> {
    /// Returns what the work returned, where it was done here.
    pub fn ran(self) -> Option<T> {
        match self {
            Self::Ran(value) => Some(value),
            Self::Duplicate(_) => None,
        }
    }
}

/// Another caller came first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Duplicate {
    /// The name of the run.
    pub name: LockName,
    /// How long ago the first run began, by the server's clock.
    pub since: Duration,
    /// The label of the first caller, or of its runtime.
    pub holder: String,
    /// How far the first run is.
    pub progress: Progress,
    /// The time until the lock opens if the server gets no further command from the first run: the
    /// rest of the window, or of the lease's ttl, which is extended while the run goes on.
    pub remaining: Duration,
    /// The fence of the first run, under which it may have written its result.
    pub fence: Fence,
}

/// How far a run is, as the store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It runs; or its process died, and its ttl is not over.
    Running,
    /// It has succeeded, and its window is not over.
    Done,
}

impl Duplicate {
    fn of(name: &LockName, record: LeaseRecord) -> Self {
        let progress = if record.kept { Progress::Done } else { Progress::Running };
        let LeaseRecord { fence, remaining, label: holder, held_for: since, .. } = record;
        Self { name: name.clone(), since, holder, progress, remaining, fence }
    }
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, since, holder, remaining, .. } = self;
        let (since, remaining) = (since.as_secs_f64(), remaining.as_secs_f64());
        match self.progress {
            Progress::Running => {
                write!(f, "{name:?} runs already: begun {since:.3} s ago by {holder}")
            }
            Progress::Done => write!(
                f,
                "{name:?} was done already: begun {since:.3} s ago by {holder}, closed for another {remaining:.3} s"
            ),
        }
    }
}

/// A run under way, whose lease is renewed for as long as this lives; it dereferences to the
/// [`Lease`], whose name is that of the run.
///
/// [`succeed`](Self::succeed) closes the lock for the window. Everything else opens it: dropping
/// this, [`fail`](Self::fail), a panic, a cancelled task. It cannot be cloned, and succeeds at most
/// once:
///
/// ```compile_fail,E0382
/// # async fn example(run: leasehold_reentrant_lock::OnceGuard) {
/// let _ = run.succeed().await;
/// let _ = run.fail().await;
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a run that is dropped counts as failed, and its lock opens at once"]
pub struct OnceGuard {
    guard: Guard,
    window: Duration,
}

impl OnceGuard {
    /// Returns a view of the lease for others to watch.
    pub fn lease(&self) -> Lease {
        self.guard.lease()
    }

    /// Ends a run whose work is done: the lock stays closed for the window, counted from this call.
    ///
    /// `Ok` means that the server has confirmed it. This answers within one command
    /// timeout; the runtime goes on telling the server until the ttl is over.
    ///
    /// # Errors
    ///
    /// The work is done in any case; only the lock may be open.
    ///
    /// - [`ReleaseError::Lost`] when the lease had been lost: another run may have begun.
    /// - [`ReleaseError::Unconfirmed`] when the server has not confirmed it in time: the lock may
    ///   open with the ttl.
    ///
    /// # Cancel safety
    ///
    /// The success counts from the call on, polled or not; dropping the future leaves it to the
    /// runtime to send it to the server.
    #[must_use = "without the answer it is unknown whether the lock is closed"]
    pub fn succeed(self) -> impl Future<Output = Result<(), ReleaseError>> + Send + use<> {
        let Self { guard, window } = self;
        let lease = Arc::clone(&guard.lease.0);
        if !window.is_zero() {
            lease.close_until(lease.clock().now() + window);
        }
        async move {
            let closed_until = lease.closed_until();
            match guard.release().await {
                Ok(Released::Kept { .. }) => Ok(()),
                Ok(_) if closed_for(closed_until, lease.clock().now()).is_none() => Ok(()),
                Ok(_) => Err(ReleaseError::Lost(LeaseLost::new(&lease, LossReason::Gone))),
                Err(error) => Err(error),
            }
        }
    }

    /// Ends a run that failed: the lock is open again when this returns, within one command timeout.
    ///
    /// # Errors
    ///
    /// - [`ReleaseError::Lost`] when the lease had been lost: the lock was open before.
    /// - [`ReleaseError::Unconfirmed`] when the server has not confirmed it in time: it opens once
    ///   the server hears of it, or with the ttl.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it to the runtime to open the lock.
    pub async fn fail(self) -> Result<(), ReleaseError> {
        self.guard.release().await.map(|_| ())
    }
}

impl Deref for OnceGuard {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.guard.lease
    }
}
