//! The storage's side: gates that refuse stale fences.

#[cfg(feature = "tower")]
pub use leasehold_fencing::http;
#[cfg(feature = "object-store")]
pub use leasehold_fencing::ObjectGate;
/// What a [`FencedScript`] answers; `redis::FromRedisValue` reads it.
pub use leasehold_core::redis_client::Value as RedisValue;
pub use leasehold_fencing::{
    Admitted, BodyError, FenceGate, FencedScript, GateError, GateFuture, MemoryGate, RedisGate,
    ResourceError, StaleFence, Verdict, judge,
};
