//! Locks on a Cluster: failovers, slots that move, and a shard that is down.

mod failover;
mod migration;
mod scene;
mod shards;
