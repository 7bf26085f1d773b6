use std::{sync::Arc, time::Duration};

use leasehold_core::{LockName, Mode};

use crate::{
    acquire::{Acquire, How},
    engine::Engine,
    lock::ReentrantLock,
    read_guard::ReadGuard,
};

/// A lock that many may read at once, and one may write.
///
/// It is the lock of the same name: a [`ReentrantLock`] and [`write`](Self::write) exclude each other and all
/// readers. Writers are served in the order in which they came. Readers and writers take turns: when a writer is done, all
/// readers who wait are let in, and when they are done, the next writer. So neither starves.
///
/// All readers of one process share one lease, whatever their number. It is renewed, and its loss is told to each of
/// them. A process that dies holds a writer up for one ttl at most.
///
/// ```
/// use leasehold::LockRuntime;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = LockRuntime::embedded()?;
/// let prices = locks.rw_lock("prices")?;
/// let (one, other) = (prices.read().await?, prices.read().await?); // together
/// assert_eq!(one.fence(), other.fence());
/// assert!(prices.write().try_acquire().await?.is_none());
/// drop((one, other));
///
/// let guard = prices.write().await?; // alone
/// assert!(prices.read().try_acquire().await?.is_none());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
///
/// A quorum has no readers: there, every read fails as `AcquireError::Store`.
#[derive(Debug, Clone)]
pub struct RwLock {
    lock: ReentrantLock,
}

impl RwLock {
    #[doc(hidden)]
    pub fn new(engine: Arc<Engine>, name: LockName) -> Self {
        Self { lock: ReentrantLock::new(engine, name) }
    }

    /// Returns its name.
    pub fn name(&self) -> &LockName {
        self.lock.name()
    }

    /// The same lock, whose metrics count under a class; see [`ReentrantLock::class`].
    #[must_use]
    pub fn class(self, class: impl AsRef<str>) -> Self {
        Self { lock: self.lock.class(class) }
    }

    /// The same lock, which this process may keep to itself for this long while nobody here uses it; see
    /// [`ReentrantLock::keep_idle`]. Reads then need no command until a writer comes.
    #[must_use]
    pub fn keep_idle(self, time: Duration) -> Self {
        Self { lock: self.lock.keep_idle(time) }
    }

    /// Acquires it to read, together with others.
    pub fn read(&self) -> Acquire<ReadGuard> {
        Acquire::new(How { mode: Mode::Read, ..How::of(self.lock.clone()) })
    }

    /// Acquires it to write, alone.
    pub fn write(&self) -> Acquire {
        self.lock.acquire()
    }
}
