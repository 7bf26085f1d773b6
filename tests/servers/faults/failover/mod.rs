//! Masters that are replaced: by a replica that knows less, by one of several, while they live on.

mod clock_behind;
mod cluster_address_reused;
mod cluster_failover;
mod lost_grant;
mod planned_failover;
mod replicas_gone;
mod sentinel_hangs;
mod sentinel_lies;
mod shard_down;
mod slot_migration;
mod stale_master;
mod writable_replica;

mod counting;
pub(super) mod overlap;
mod stale;
mod unacknowledged;
