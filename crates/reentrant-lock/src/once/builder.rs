use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Instant, LockName, NameError, RuntimeLabel, StoreError, StoreErrorKind, backoff,
    store::{Inspection, LeaseRecord},
};
use tokio::select;

use crate::{
    cohort::TurnId,
    engine::Engine,
    error::{AcquireError, OptionsError},
    lock::{Acquire, ReentrantLock},
};

use super::{
    guard::OnceGuard,
    outcome::{Begun, Duplicate},
};

/// Work that is done once: the first caller runs, and all others are duplicates while it runs and
/// for a window after its success.
///
/// The run holds the lock of the same name. A success keeps that lock closed for the window. If the
/// run fails, is dropped or loses its lease, the lock opens again; if its process dies, the lock
/// opens after the ttl.
///
/// Nothing can promise that work is done *exactly* once: a process may die, or lose its lease,
/// after the work is done and before its success is reported. Give [`OnceGuard::stamp`] to the
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
///     match form.run(|lease| async move { Ok::<_, std::io::Error>(lease.fence()) }).await? {
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
    pub(super) acquire: Acquire,
    window: Duration,
}

/// The pauses between two looks at a lock.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(250);

impl Once {
    /// The window after a success unless another is given.
    const WINDOW: Duration = Duration::from_secs(60);

    /// A run of a runtime; services ask their `LockRuntime` for one.
    #[doc(hidden)]
    pub fn new(engine: Arc<Engine>, name: LockName) -> Self {
        // An idle lock would look like a run to others, under the label of an earlier one.
        let lock = ReentrantLock::new(engine, name).not_kept();
        Self { acquire: lock.acquire(), window: Self::WINDOW }
    }

    /// For how long after a success the lock stays closed, up to 24 h; zero opens it at once.
    /// Default: 60 s.
    pub fn window(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// How long the run's lease lives without renewal, 100 ms to 24 h: after a crash the lock
    /// opens when it is over. Default: the runtime's.
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { acquire: self.acquire.ttl(ttl), ..self }
    }

    /// What duplicates see as the holder, such as the id of a request; cut at 200 bytes.
    /// Default: the runtime's label.
    pub fn label(self, label: impl AsRef<str>) -> Self {
        Self { acquire: self.acquire.label(RuntimeLabel::new(label)), ..self }
    }

    /// Counts the run under a class in metrics. Default: `default`.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the text cannot be a metric label.
    pub fn class(self, class: impl AsRef<str>) -> Result<Self, NameError> {
        let mut acquire = self.acquire;
        acquire.lock = acquire.lock.class(class)?;
        Ok(Self { acquire, ..self })
    }

    /// The name of the run, and of its lock.
    pub fn name(&self) -> &LockName {
        &self.acquire.lock.name
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
    /// - [`AcquireError::Options`] when ttl or window are out of range.
    /// - [`AcquireError::ShutDown`] when the runtime was shut down.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes its effect back: the lock is open again.
    pub async fn begin(&self) -> Result<Begun, AcquireError> {
        let ReentrantLock { engine, name, .. } = &self.acquire.lock;
        if self.window > OptionsError::MAX_CLOSED {
            let (lock, option) = (name.clone(), OptionsError::Window);
            return Err(AcquireError::Options { lock, option });
        }
        let clock = &engine.clock;
        let started = clock.now();
        let gives_up = started + engine.timing.command_timeout;
        let mut failures = 0;
        while clock.now() < gives_up {
            // An owner of its own: it enters nothing that the caller has already.
            let acquire = self.acquire.clone().owner(&engine.owner());
            // A second try may begin late: dropped in time, it takes back what it came to.
            let tried = select! {
                biased;
                tried = acquire.try_acquire() => tried?,
                () = clock.sleep_until(gives_up) => break,
            };
            if let Some(guard) = tried {
                return Ok(Begun::First(OnceGuard::new(guard, self.window)));
            }
            if let Some(record) = self.look(gives_up).await? {
                return Ok(Begun::Duplicate(Duplicate::of(name, record)));
            }
            // The lock was closed, and opened again before the look showed who had closed it.
            let pause = backoff(SHORTEST, LONGEST, failures, engine.entropy.fraction());
            failures += 1;
            clock.sleep_until(gives_up.min(clock.now() + pause)).await;
        }
        if engine.outages().silence().has_been_silent_since(started) {
            return Err(engine.unavailable(name, started, None));
        }
        Err(engine.failed(name, started, unsettled()))
    }

    /// The run that is under way, or has succeeded; `None` when the lock is open, or about to be.
    async fn look(&self, deadline: Instant) -> Result<Option<LeaseRecord>, AcquireError> {
        let ReentrantLock { engine, name, .. } = &self.acquire.lock;
        let started = engine.clock.now();
        let looked = engine.inspect_until(name, started, deadline).await;
        Ok(match looked.map_err(|error| engine.failed(name, started, error))? {
            Inspection::Held(record) if !self.is_ending(&record) => Some(record),
            Inspection::Held(_) | Inspection::Free { .. } => None,
        })
    }

    /// Whether a run of this very process has ended, or never began, and its release or withdrawal
    /// is on its way.
    fn is_ending(&self, record: &LeaseRecord) -> bool {
        let ReentrantLock { engine, name, .. } = &self.acquire.lock;
        let turn = TurnId { id: record.id, first: record.fence };
        !record.kept && engine.look(name, |cohort| cohort.is_ending(turn)) == Some(true)
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
