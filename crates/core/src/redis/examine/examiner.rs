use std::sync::Arc;

use super::{cluster, quorum, sentinels, server::Visit};
use crate::{
    clock::Clock,
    diagnosis::{
        Diagnosis, Expected,
        facts::{Facts, Topology},
    },
    redis::{config::RedisConfig, store::probe},
    types::RuntimeId,
};

/// Examines the servers of an address: the server, the Sentinels and their master, or all masters
/// of a Cluster.
///
/// It makes connections of its own and closes them at the end, so that no lease waits for it.
#[derive(Debug, Clone)]
// ADR 0040
pub struct Examiner {
    pub(super) config: RedisConfig,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runtime_id: RuntimeId,
    pub(super) expected: Expected,
}

impl Examiner {
    /// An examiner for the servers of a configuration.
    pub fn new(
        config: RedisConfig,
        clock: Arc<dyn Clock>,
        runtime_id: RuntimeId,
        expected: Expected,
    ) -> Self {
        Self { config, clock, runtime_id, expected }
    }

    /// Examines all servers, side by side. It never fails: what cannot be examined is a finding.
    ///
    /// A server may take the connect timeout, two command timeouts and 5 s. Before that, the Sentinels,
    /// or the nodes that tell of the masters, may take two connect timeouts.
    ///
    /// It has to be polled inside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind but, at worst, probe keys that live a second.
    pub async fn examine(&self) -> Diagnosis {
        let address = self.config.address.to_string();
        // Boxed: it is large, and would be a part of every caller's.
        let facts = Box::pin(self.gather()).await;
        Diagnosis::of(address, &facts, &self.expected)
    }

    /// The diagnosis where the tokio runtime has ended in which it was to be made.
    pub fn without_tokio(&self) -> Diagnosis {
        Diagnosis::not_made(
            self.config.address.to_string(),
            "nothing was examined: the tokio runtime of this lock runtime has ended",
            "examine it while that tokio runtime lives, or ask for own_thread()",
        )
    }

    /// The diagnosis in a fork of the process that made the lock runtime.
    pub fn in_fork(&self) -> Diagnosis {
        Diagnosis::not_made(
            self.config.address.to_string(),
            "nothing was examined: this process is a fork of the one that made the lock runtime",
            "make a lock runtime in each process, after the fork",
        )
    }

    async fn gather(&self) -> Facts {
        if let Some(group) = self.config.address.sentinels() {
            return sentinels::gather(self, group).await;
        }
        if self.config.address.cluster().is_some() {
            return cluster::gather(self).await;
        }
        if let Some(nodes) = self.config.address.quorum() {
            return quorum::gather(self, nodes).await;
        }
        let probe = probe(self.runtime_id).ok();
        let server = Visit::new(self, self.config.clone(), probe).facts().await;
        Facts { topology: Topology::Server, servers: vec![server] }
    }
}
