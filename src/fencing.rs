//! The storage's side: gates that refuse stale fences.

#[cfg(feature = "object-store")]
pub use leasehold_fencing::ObjectGate;
#[cfg(feature = "tower")]
pub use leasehold_fencing::http;
/// The client of the gate on PostgreSQL.
#[cfg(feature = "postgres")]
pub use leasehold_fencing::sqlx;
pub use leasehold_fencing::{
    Admitted, BodyError, ConflictKind, FenceGate, FencedScript, GateError, GateFuture, MemoryGate,
    NotShutOut, RedisGate, ResourceError, StaleFence, TransactionConflict, postgres,
};
