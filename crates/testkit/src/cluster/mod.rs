//! A Redis Cluster of three masters, and a store that sends each name to the master that owns it.

mod redis_cluster;
mod slot;
mod store;

pub use redis_cluster::RedisCluster;
pub use slot::slot_of;
pub use store::ClusterStore;
