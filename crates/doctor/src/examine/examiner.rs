use std::sync::Arc;

use futures_util::future::join_all;
use leasehold_core::{Clock, LockName, RuntimeId, StoreError};
use leasehold_redis::{
    ClusterMaster, Endpoint, MasterVerdict, RedisConfig, SentinelGroup, decide, masters, probe,
    probe_in,
};

use super::{sentinels, visit::Visit};
use crate::{
    Diagnosis, Expected,
    facts::{Deployment, Facts, Sentinels, ServerFacts},
};

/// Examines the servers of an address: the server, the Sentinels and their master, or all masters
/// of a Cluster.
///
/// It makes connections of its own and closes them at the end, so that no lease waits for it.
#[derive(Debug, Clone)]
// ADR 0040
pub struct Examiner {
    config: RedisConfig,
    clock: Arc<dyn Clock>,
    runtime_id: RuntimeId,
    expected: Expected,
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
        let address = &self.config.address;
        if let Some(group) = address.sentinels() {
            return self.sentinels(group).await;
        }
        if address.cluster().is_some() {
            return self.cluster().await;
        }
        if let Some(nodes) = address.quorum() {
            let servers = join_all(nodes.iter().map(|place| self.server_at(place))).await;
            return Facts { deployment: Deployment::Quorum(self.config.quorum), servers };
        }
        let servers = vec![self.visit(self.config.clone(), self.probe()).await];
        Facts { deployment: Deployment::Server, servers }
    }

    /// Asks all Sentinels side by side, and examines the master that most of them name.
    async fn sentinels(&self, group: &SentinelGroup) -> Facts {
        let ask = |info| sentinels::ask(&self.config, &self.clock, info, &group.master);
        let answers = join_all(group.sentinels.iter().map(ask)).await;
        let (all, votes): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
        let votes: Vec<Option<Endpoint>> = votes.into_iter().flatten().collect();
        let master = match decide(&votes, all.len(), None) {
            MasterVerdict::Named(place) => Some(place),
            MasterVerdict::Unknown | MasterVerdict::Open => None,
        };
        let named = master.as_ref().map(ToString::to_string);
        let sentinels = Sentinels { name: group.master.clone(), master: named, all };
        let mut servers = Vec::new();
        if let Some(place) = master {
            servers.push(self.server_at(&place).await);
        }
        Facts { deployment: Deployment::Sentinels(sentinels), servers }
    }

    /// Finds the masters of a Cluster, and examines all of them.
    async fn cluster(&self) -> Facts {
        let masters = match masters(&self.config, Arc::clone(&self.clock)).await {
            Ok(masters) => masters,
            Err(error) => {
                return Facts { deployment: Deployment::Cluster(Err(error)), servers: Vec::new() };
            }
        };
        let ranges = masters.iter().flat_map(|master| &master.slots);
        let slots = ranges.map(|range| u32::try_from(range.len()).unwrap_or(u32::MAX));
        let covered = slots.fold(0, u32::saturating_add);
        let visits = masters.iter().map(|ClusterMaster { endpoint: place, slots }| {
            let probe = probe_in(slots, self.runtime_id).ok().flatten();
            self.visit_at(place, self.config.at(place).map(RedisConfig::of_cluster), probe)
        });
        let servers = join_all(visits).await;
        Facts { deployment: Deployment::Cluster(Ok(covered)), servers }
    }

    async fn server_at(&self, place: &Endpoint) -> ServerFacts {
        self.visit_at(place, self.config.at(place), self.probe()).await
    }

    async fn visit_at(
        &self,
        place: &Endpoint,
        config: Result<RedisConfig, StoreError>,
        probe: Option<LockName>,
    ) -> ServerFacts {
        match config {
            Ok(config) => self.visit(config, probe).await,
            Err(error) => ServerFacts { place: place.to_string(), told: Err(error) },
        }
    }

    async fn visit(&self, config: RedisConfig, probe: Option<LockName>) -> ServerFacts {
        let visit = Visit {
            config,
            clock: &self.clock,
            runtime_id: self.runtime_id,
            acks: self.expected.acks,
            probe,
            is_of_quorum: self.config.address.quorum().is_some(),
        };
        visit.facts().await
    }

    /// A lock that nobody uses.
    fn probe(&self) -> Option<LockName> {
        probe(self.runtime_id).ok()
    }
}
