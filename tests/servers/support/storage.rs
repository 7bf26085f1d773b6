//! A storage on a Redis server of its own, behind a gate and beside it.

use std::time::Duration;

use leasehold::{
    fencing::{FenceGate, RedisGate},
    redis::{RedisConfig, RedisPool},
};
use tokio::task::JoinSet;

use super::patient;

/// A gate whose storage may be slow.
pub(crate) fn gate_at(url: &str) -> RedisGate {
    let patience = Duration::from_secs(10);
    let config = RedisConfig::new(url).expect("an address");
    let config = config.command_timeout(patience).connect_timeout(patience);
    RedisGate::new(RedisPool::new(&config).expect("settings that can work"))
}

/// So many calls of a new gate at once; all are admitted.
pub(crate) async fn crowd_at(url: &str, calls: usize) {
    let locks = patient::builder().embedded().expect("good settings");
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    let gate = gate_at(url);
    let mut called = JoinSet::new();
    for number in 0..calls {
        let (gate, stamp) = (gate.clone(), guard.stamp());
        called.spawn(async move { gate.admit(&format!("orders:{number}"), stamp).await });
    }
    while let Some(admitted) = called.join_next().await {
        admitted.expect("no panic").expect("the newest fence");
    }
}
