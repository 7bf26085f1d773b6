//! The storage's side: gates that refuse stale fences.

/// What a [`FencedScript`] answers; `redis::FromRedisValue` reads it.
pub use leasehold_core::redis_client::Value as RedisValue;
#[cfg(feature = "object-store")]
pub use leasehold_fencing::ObjectGate;
#[cfg(feature = "tower")]
pub use leasehold_fencing::http;
pub use leasehold_fencing::{
    Admitted, BodyError, FenceGate, FencedScript, GateError, GateFuture, MemoryGate, RedisGate,
    ResourceError, StaleFence, Verdict, judge,
};
