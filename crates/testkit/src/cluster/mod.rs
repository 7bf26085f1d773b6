//! A Redis Cluster, usually of three masters, with replicas or without, and slots that move.

mod migration;
mod redis_cluster;
mod view;

pub use leasehold_core::seam::slot_of;
pub use redis_cluster::RedisCluster;
