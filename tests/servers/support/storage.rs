//! A storage on a Redis server of its own, behind a gate and beside it.

use std::time::Duration;

use leasehold::{
    fencing::RedisGate,
    redis::{RedisConfig, RedisPool},
};

/// A gate whose storage may be slow.
pub(crate) fn gate_at(url: &str) -> RedisGate {
    let patience = Duration::from_secs(10);
    let config = RedisConfig::new(url).expect("an address");
    let config = config.command_timeout(patience).connect_timeout(patience);
    RedisGate::new(RedisPool::new(&config).expect("settings that can work"))
}
