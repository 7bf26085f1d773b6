//! A quorum as everybody writes it first: `SET NX PX` on all servers, most of which have to answer;
//! nothing is taken back, and there is no fence.

use std::time::Duration;

use leasehold_testkit::{QuorumGroup, RedisServer};
use tokio::task::JoinSet;

use crate::faults::server::scene;
use crate::support::naive::{NaiveHeld, NaiveLock};

/// Locks of one name at some servers.
pub(super) struct NaiveQuorum(Vec<NaiveLock>);

impl NaiveQuorum {
    /// Connects to all servers.
    pub(super) async fn connect(group: &QuorumGroup, ttl: Duration) -> Self {
        Self::of(group.servers(), ttl).await
    }

    /// Connects to these servers.
    pub(super) async fn of(servers: impl Iterator<Item = &RedisServer>, ttl: Duration) -> Self {
        let mut locks = Vec::new();
        for server in servers {
            locks.push(scene::naive(server, ttl).await);
        }
        Self(locks)
    }

    /// Asks all servers at once, and waits for the answers of all.
    pub(super) async fn ask_all(&self) -> Vec<NaiveHeld> {
        let asking: JoinSet<_> = self
            .0
            .iter()
            .cloned()
            .map(|mut lock| async move { lock.try_acquire().await.ok().flatten() })
            .collect();
        asking.join_all().await.into_iter().flatten().collect()
    }
}
