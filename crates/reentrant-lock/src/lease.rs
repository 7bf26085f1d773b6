use std::sync::Arc;

use leasehold_watchdog::HeldLease;

/// A view of a lease: it can be watched and shown to others, but neither prolongs nor ends it.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::LockRuntime;
///
/// let locks = LockRuntime::embedded()?;
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// let lease = guard.lease();
/// let watch = tokio::spawn(async move { lease.lost().await }); // does not hold the lock
/// guard.release().await?;
/// println!("{}", watch.await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Lease(pub(crate) Arc<HeldLease>);

/// What a lease, a guard and a run tell of the lease: each passes it on from what it has inside.
macro_rules! tells_of_lease {
    ($name:ident, $inner:tt $(, $($more:tt)*)?) => {
        impl $name {
            /// The lock.
            pub fn name(&self) -> &leasehold_core::LockName {
                self.$inner.name()
            }

            /// The id of the lease, never used for another.
            pub fn id(&self) -> leasehold_core::AcquisitionId {
                self.$inner.id()
            }

            /// The fence token: hand it to the storage with every write.
            pub fn fence(&self) -> leasehold_core::FenceToken {
                self.$inner.fence()
            }

            /// What a storage's gate asks for: the fence, and the id of the lease.
            pub fn stamp(&self) -> leasehold_core::Stamp {
                leasehold_core::Stamp::new(self.fence(), self.id())
            }

            /// Whether the lease is held; looks at the clock first.
            pub fn is_held(&self) -> bool {
                self.$inner.is_held()
            }

            $($($more)*)?

            /// For how long the lease may be believed without another renewal; zero when it is
            /// over.
            pub fn remaining(&self) -> std::time::Duration {
                self.$inner.remaining()
            }

            /// A future, borrowing nothing, that resolves when the lease is over, and how it ended.
            pub fn lost(&self) -> leasehold_watchdog::Lost {
                self.$inner.lost()
            }

            /// A token that is cancelled when the lease is over.
            pub fn cancellation(&self) -> tokio_util::sync::CancellationToken {
                self.$inner.cancellation()
            }
        }
    };
}
pub(crate) use tells_of_lease;

tells_of_lease! {
    Lease, 0,
    /// What may be believed of the lease; looks at the clock first.
    pub fn state(&self) -> leasehold_core::lease::LeaseState {
        self.0.state()
    }
}
