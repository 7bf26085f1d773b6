use std::{fmt, time::Duration};

use leasehold_core::{FenceToken, LockName, store::LeaseRecord};

use super::guard::OnceGuard;

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
    /// What the work returned, where it was done here.
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
    pub fence: FenceToken,
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
    pub(super) fn of(name: &LockName, record: LeaseRecord) -> Self {
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
