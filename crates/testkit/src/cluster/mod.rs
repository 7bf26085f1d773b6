//! A Redis Cluster, usually of three masters, with replicas or without, and slots that move.

mod migration;
mod redis_cluster;
mod view;

pub use leasehold_redis::slot_of;
pub use redis_cluster::RedisCluster;
