//! Where leases are kept, and what a store tells of a lock.
//!
//! [`MemoryStore`] keeps leases in this process. Give it to
//! [`LockRuntimeBuilder::on_store`](crate::LockRuntimeBuilder::on_store) to have several runtimes
//! share it.

pub use leasehold_core::{
    FencePolicy, FenceSettings, MemoryStore, Mode,
    store::{Inspection, LeaseRecord, WaiterRecord},
};

/// What a store of your own needs, with the feature `unstable-store`; it may change in any version.
///
/// A store keeps the contract of [`LockStore`](unstable::LockStore). This one counts the commands
/// of another:
///
/// ```
/// use std::sync::{Arc, Weak, atomic::{AtomicU64, Ordering}};
///
/// use leasehold::{
///     LockRuntime, RuntimeId,
///     store::{
///         FenceSettings, MemoryStore,
///         unstable::{Command, Listener, LockStore, Reply, StoreFuture},
///     },
///     time::{Instant, SystemClock},
/// };
///
/// #[derive(Debug)]
/// struct Counting { inner: MemoryStore, sent: AtomicU64 }
///
/// impl LockStore for Counting {
///     fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
///         self.sent.fetch_add(1, Ordering::Relaxed);
///         self.inner.send(command, deadline)
///     }
///
///     fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
///         self.inner.listen(runtime, listener);
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let inner = MemoryStore::new(Arc::new(SystemClock), FenceSettings::default());
/// let store = Arc::new(Counting { inner, sent: AtomicU64::new(0) });
/// let locks = LockRuntime::builder().on_store(Arc::clone(&store) as _)?;
/// locks.lock("orders/42")?.acquire().await?.release().await?;
/// assert_eq!(store.sent.load(Ordering::Relaxed), 2);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "unstable-store")]
pub mod unstable {
    pub use leasehold_core::{
        Entropy, LockStore, Namespace, RuntimeLabel, Secret, Sleep, SystemEntropy, Ttl,
        store::{
            Acquire, AcquireAnswer, Ask, Command, ForceRelease, ForceReleaseAnswer, Granted,
            Heartbeat, Heartbeats, Hold, HoldAnswer, Inspect, KeyScheme, Listener, Next, Place,
            Push, Release, ReleaseAnswer, RenewAnswer, Renewal, Renewals, Reply, Request, Scan,
            ScanCursor, ScanPage, StoreFuture, Waiter, Withdraw, WithdrawAnswer,
        },
    };
    pub use leasehold_redis::RedisStore;
}
