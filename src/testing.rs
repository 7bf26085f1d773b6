//! For tests of your own code: a clock that a test moves, and a store that fails on demand.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//!
//! use leasehold::{
//!     LeaseEnd, LockRuntime, LossReason,
//!     testing::{Failure, ManualClock, TestStore},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Arc::new(ManualClock::new());
//! let store = TestStore::new(clock.clone());
//! let locks = LockRuntime::builder().clock(clock.clone()).on_store(Arc::new(store.clone()))?;
//! let lock = locks.lock("orders/42")?;
//!
//! // A lease that is lost on purpose: what does your code do?
//! let guard = lock.acquire().await?;
//! assert!(store.take_away(guard.name()).await);
//! assert_eq!(guard.lost().await, LeaseEnd::Lost(LossReason::ForceReleased));
//!
//! // An outage for longer than a ttl takes no real time.
//! let guard = lock.acquire().await?;
//! store.fail(Failure::Unreachable);
//! clock.travel(Duration::from_secs(30)).await;
//! assert_eq!(guard.lost().await, LeaseEnd::Lost(LossReason::Expired));
//!
//! store.recover();
//! lock.acquire().await?.release().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A runtime on another clock than the system's needs that clock to be moved: its waits, renewals
//! and timeouts follow it alone.

pub use leasehold_testing::{Failure, ManualClock, TestStore, stamp};
