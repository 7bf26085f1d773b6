use std::{future::Future, sync::Arc};

use leasehold_core::{Class, LockName, NameError, metric::ClassMetrics};

use crate::{
    acquire::Acquire,
    engine::Engine,
    error::{AcquireError, WithError},
    guard::Guard,
    lease::Lease,
};

/// A lock by name.
///
/// Cheap to make and to clone; two of the same name are the same lock.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::LockRuntime;
///
/// let locks = LockRuntime::embedded()?;
/// let lock = locks.lock("orders/42")?.class("orders")?; // the class is a label of metrics
///
/// let guard = lock.acquire().await?; // waits
/// assert!(lock.try_acquire().await?.is_none()); // does not wait
/// guard.release().await?;
///
/// // A closure, whose future is dropped when the lease is lost:
/// let fence = lock.with(|lease| async move { Ok::<_, std::io::Error>(lease.fence()) }).await?;
/// # let _ = fence;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ReentrantLock {
    engine: Arc<Engine>,
    name: LockName,
    metrics: Arc<ClassMetrics>,
}

impl ReentrantLock {
    /// A lock of a runtime; services ask their `LockRuntime` for one.
    #[doc(hidden)]
    pub fn new(engine: Arc<Engine>, name: LockName) -> Self {
        let metrics = engine.metrics.class(&Class::default());
        Self { engine, name, metrics }
    }

    /// The same lock, counted under a class in metrics.
    ///
    /// # Errors
    ///
    /// [`NameError`] when the text cannot be a metric label.
    pub fn class(self, class: impl AsRef<str>) -> Result<Self, NameError> {
        let metrics = self.engine.metrics.class(&Class::new(class)?);
        Ok(Self { metrics, ..self })
    }

    /// The lock's name.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// An acquire that waits, to be configured and awaited.
    pub fn acquire(&self) -> Acquire {
        Acquire::new(&self.engine, &self.name, &self.metrics)
    }

    /// Acquires the lock if it is free; `None` means that another task or process holds it or waits for it.
    ///
    /// # Errors
    ///
    /// As [`Acquire::try_acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`Acquire::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Option<Guard>, AcquireError> {
        self.acquire().try_acquire().await
    }

    /// Runs a closure while holding the lock; see [`Acquire::with`].
    ///
    /// # Errors
    ///
    /// As [`Acquire::with`].
    ///
    /// # Cancel safety
    ///
    /// As [`Acquire::with`].
    pub async fn with<T, E, F>(&self, body: impl FnOnce(Lease) -> F) -> Result<T, WithError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.acquire().with(body).await
    }
}
