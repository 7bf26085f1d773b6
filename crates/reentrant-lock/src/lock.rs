use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use leasehold_core::{Class, LockName, NameError, metric::ClassMetrics};

use crate::{
    acquire::{Acquire, How},
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
/// let lock = locks.lock("orders/42")?.class("orders"); // the class is a label of metrics
///
/// let guard = lock.acquire().await?; // waits
/// assert!(lock.try_acquire().await?.is_none()); // does not wait
/// guard.release().await?;
///
/// // A closure, whose future is dropped when the lease is lost:
/// let paid = lock.with(async |lease| pay(42, lease.stamp()).await).await?;
/// // The same for one that cannot fail:
/// let fence = lock.with_ok(async |lease| lease.fence()).await?;
/// # async fn pay(_order: u32, _stamp: leasehold::Stamp) -> std::io::Result<()> { Ok(()) }
/// # let _ = (paid, fence);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ReentrantLock {
    pub(crate) engine: Arc<Engine>,
    pub(crate) name: LockName,
    pub(crate) metrics: Arc<ClassMetrics>,
    pub(crate) keep_idle: Duration,
    /// Why the class cannot be one: acquires fail with it.
    pub(crate) bad_class: Option<Box<NameError>>,
}

impl ReentrantLock {
    /// A lock of a runtime; services ask their `LockRuntime` for one.
    #[doc(hidden)]
    pub fn new(engine: Arc<Engine>, name: LockName) -> Self {
        let metrics = engine.metrics_of(&Class::default());
        let keep_idle = engine.timing.keep_idle;
        Self { engine, name, metrics, keep_idle, bad_class: None }
    }

    /// Counts the lock under a class in metrics: 1 to 64 ASCII letters, digits, `-`, `_` and
    /// `.`; each acquire of another class fails. Default: `default`.
    #[must_use]
    pub fn class(self, class: impl AsRef<str>) -> Self {
        match Class::new(class) {
            Ok(class) => Self { metrics: self.engine.metrics_of(&class), bad_class: None, ..self },
            Err(error) => Self { bad_class: Some(Box::new(error)), ..self },
        }
    }

    /// Lets the lock stay idle with this process for at most `time` after its last lease,
    /// while nobody else wants it. Zero for not at all. Default: the runtime's.
    ///
    /// The next acquire of this process then takes the lock without a command to the server, with
    /// the next fence. When another process queues, an idle lock is passed to it at once. A name is
    /// kept from its second use on, and not while other processes want it. If several handles of
    /// one process differ, the one that acquired last decides. At most the runtime's ttl
    /// minus half a second, or minus a quarter of the claim window where that is shorter: more is an error of the
    /// acquire. A lock that was acquired with a shorter ttl stays for less. The guide *kept turns* says when it helps, and when it
    /// harms.
    #[must_use]
    pub fn keep_idle(self, time: Duration) -> Self {
        Self { keep_idle: time, ..self }
    }

    /// Returns the lock's name.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// Makes an acquire that waits, to be configured and awaited: `lock.acquire().ttl(..).wait(..)`.
    #[doc(alias("lock", "ttl", "timeout"))]
    pub fn acquire(&self) -> Acquire {
        Acquire::new(How::of(self.clone()))
    }

    /// Acquires the lock if it is free; see [`Acquire::try_acquire`].
    ///
    /// # Errors
    ///
    /// As [`Acquire::try_acquire`].
    ///
    /// # Cancel safety
    ///
    /// As [`Acquire::try_acquire`].
    #[doc(alias = "try_lock")]
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

    /// Runs a closure that cannot fail while holding the lock; see [`Acquire::with_ok`].
    ///
    /// # Errors
    ///
    /// As [`Acquire::with_ok`].
    ///
    /// # Cancel safety
    ///
    /// As [`Acquire::with_ok`].
    pub async fn with_ok<T, F>(
        &self,
        body: impl FnOnce(Lease) -> F,
    ) -> Result<T, WithError<Infallible>>
    where
        F: Future<Output = T>,
    {
        self.acquire().with_ok(body).await
    }
}

/// What users look for here: to call one is an error of the compiler that names `acquire()`.
impl ReentrantLock {
    #[doc(hidden)]
    pub fn ttl<T: IsSetOnAcquire>(&self, _: T) -> Acquire {
        self.acquire()
    }

    #[doc(hidden)]
    pub fn wait<T: IsSetOnAcquire>(&self, _: T) -> Acquire {
        self.acquire()
    }
}

/// The bound that no type has: its text is what the compiler says.
///
/// ```compile_fail,E0277
/// # async fn example(lock: leasehold::ReentrantLock) {
/// let guard = lock.ttl(std::time::Duration::from_secs(5)).await;
/// # }
/// ```
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a lock has no `ttl()` and no `wait()`: each acquire has its own",
    label = "write `acquire()` before: `lock.acquire().ttl(..)`, `lock.acquire().wait(..)`"
)]
pub trait IsSetOnAcquire {}
