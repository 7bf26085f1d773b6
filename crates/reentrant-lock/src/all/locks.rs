use std::{collections::BTreeSet, future::Future, sync::Arc, time::Duration};

use leasehold_core::{LockName, NameError};

use super::{acquire::AcquireAll, guard::AllGuard, leases::AllLeases};
use crate::{
    engine::Engine,
    error::{AcquireError, WithError},
    lock::ReentrantLock,
};

/// Several locks, which are taken together; see `LockRuntime::all`.
///
/// Cheap to clone. Each is the same lock as that of its name alone.
#[derive(Debug, Clone)]
pub struct AllLocks {
    /// The first lock; the others have its settings.
    pub(super) first: ReentrantLock,
    /// All names, each once, in the order in which they are taken.
    pub(super) names: Arc<[LockName]>,
}

impl AllLocks {
    /// Some locks of a runtime.
    ///
    /// # Errors
    ///
    /// [`NameError::None`] if there is no name.
    #[doc(hidden)]
    pub fn new(engine: &Arc<Engine>, mut names: Vec<LockName>) -> Result<Self, NameError> {
        let mut known = BTreeSet::new();
        names.retain(|name| known.insert(name.clone()));
        (engine.rules.orders)(&mut names);
        let first = names.first().cloned().ok_or(NameError::None)?;
        Ok(Self { first: ReentrantLock::new(Arc::clone(engine), first), names: names.into() })
    }

    /// Counts the locks under a class in metrics, each as a lock of its own.
    #[must_use]
    pub fn class(self, class: impl AsRef<str>) -> Self {
        Self { first: self.first.class(class), ..self }
    }

    /// Keeps each of the locks idle as [`ReentrantLock::keep_idle`] says.
    #[must_use]
    pub fn keep_idle(self, time: Duration) -> Self {
        Self { first: self.first.keep_idle(time), ..self }
    }

    /// Returns the names of the locks, in the order in which they are taken: that of their bytes.
    pub fn names(&self) -> &[LockName] {
        &self.names
    }

    /// Makes an acquire of all locks that waits, to be configured and awaited.
    pub fn acquire(&self) -> AcquireAll {
        AcquireAll::new(self)
    }

    /// Acquires all locks if they are free; see [`AcquireAll::try_acquire`].
    ///
    /// # Errors
    ///
    /// As [`AcquireAll::try_acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`AcquireAll::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Option<AllGuard>, AcquireError> {
        self.acquire().try_acquire().await
    }

    /// Runs a closure while holding all locks; see [`AcquireAll::with`].
    ///
    /// # Errors
    ///
    /// As [`AcquireAll::with`].
    ///
    /// # Cancel safety
    ///
    /// As [`AcquireAll::with`].
    pub async fn with<T, E, F>(&self, body: impl FnOnce(AllLeases) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.acquire().with(body).await
    }
}
