//! Storage-side gates that refuse stale fences. Use the `leasehold` crate, which re-exports them.
//!
//! A lock alone cannot stop a holder that was paused past its lease from finishing its write. The
//! storage can: every grant carries a greater fence, and a gate
//! remembers the highest that has written to a resource and refuses the rest.
//!
//! - [`Stamp`] is what a writer presents: the fence and the id of its lease.
//! - [`judge`] is the one rule that all gates apply.
//! - [`FenceGate`] is the contract, [`MemoryGate`] and [`RedisGate`] keep it.
//! - With the feature `tower`, `http` has the layer before an HTTP service, and the headers of its
//!   clients.
//! - With the feature `object-store`, `ObjectGate` keeps fences in the metadata of objects.
//! - [`postgres`] has the gate for PostgreSQL, and its statements for any driver.
//!
//! ```
//! use leasehold_core::{AcquisitionId, Fence, RuntimeId};
//! use leasehold_fencing::{MemoryGate, StaleFence, Stamp};
//!
//! # let runtime = RuntimeId::new(uuid::Uuid::nil());
//! # let stamp = |fence: u64, number| -> Result<Stamp, leasehold_core::FenceError> {
//! #     Ok(Stamp::new(Fence::try_from(fence)?, AcquisitionId::new(runtime, number)))
//! # };
//! let (paused, successor) = (stamp(41, 1)?, stamp(42, 2)?); // from the guards of two leases
//! let gate = MemoryGate::new();
//! let mut stock = 10;
//!
//! gate.write("article/7", successor, || stock -= 1)?;
//! let late = gate.write("article/7", paused, || stock = 10);
//!
//! assert!(matches!(late, Err(StaleFence { highest, .. }) if highest == successor));
//! assert_eq!(stock, 9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What breaks a gate
//!
//! - *Looking first and writing later.* The comparison and the write must be one step of the
//!   storage; [`FenceGate::admit`] followed by a write of your own is two.
//! - *Asking the lock for its present fence.* Present the one that came with your lease.
//! - *A watermark that is forgotten*, by a time to live or an eviction: the next writer counts as
//!   the first, however old its fence.
//! - *One gate per process* in front of a storage that is shared.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod answer;
mod error;
mod gate;
#[cfg(feature = "tower")]
pub mod http;
mod memory;
#[cfg(feature = "object-store")]
mod object;
pub mod postgres;
mod redis;

pub use error::{
    BodyError, ConflictKind, GateError, NotShutOut, ResourceError, StaleFence, TransactionConflict,
};
pub use gate::{Admitted, FenceGate, GateFuture, Verdict, judge};
pub use leasehold_core::{Stamp, StampError};
pub use memory::MemoryGate;
#[cfg(feature = "object-store")]
pub use object::ObjectGate;
pub use redis::{FencedScript, RedisGate};
/// The client of the gate on PostgreSQL.
#[cfg(feature = "postgres")]
pub use sqlx;
