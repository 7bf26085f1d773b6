use std::{collections::BTreeSet, sync::Arc};

use futures_util::future::{OptionFuture, join_all};
use leasehold_core::{Clock, LockName, RuntimeId, StoreError};
use leasehold_redis::{
    ClusterMaster, Endpoint, MasterVerdict, NAMED_MASTER, RedisConfig, SentinelGroup,
    classify::{self, classify_dial, in_namespace},
    decide,
    decode::text,
    dial_once, hello, masters, not_run, of_named_master, preflight, probe, probe_in,
};
use redis::ConnectionInfo;

use super::{
    client::{ServerClient, unanswered},
    questions, sentinels,
};
use crate::{
    Diagnosis, Expected,
    facts::{
        Connections, Deployment, Facts, NamedMaster, SentinelFacts, SentinelsTold, ServerFacts,
        ServerTold,
    },
};

/// Examines the servers of an address: the server, the Sentinels and their master, or all masters
/// of a Cluster.
///
/// It makes connections of its own and closes them at the end, so that no lease waits for it.
#[derive(Debug, Clone)]
// ADR 0040
pub struct Examiner {
    /// Where the servers are.
    pub config: RedisConfig,
    /// The clock of the lock runtime.
    pub clock: Arc<dyn Clock>,
    /// The id of the lock runtime.
    pub runtime_id: RuntimeId,
    /// What the lock runtime expects of the servers.
    pub expected: Expected,
}

impl Examiner {
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
    pub async fn examine(self: Arc<Self>) -> Diagnosis {
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

    /// The diagnosis where nothing drives the tokio runtime in which it was to be made.
    pub fn undriven(&self) -> Diagnosis {
        Diagnosis::not_made(
            self.config.address.to_string(),
            "nothing was examined: the tokio runtime of this lock runtime stands still",
            "drive it, move blocking code in its tasks to spawn_blocking, or ask for own_thread()",
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
            let visits =
                nodes.iter().map(|place| self.visit_at(place, self.config.at(place), self.probe()));
            let deployment = Deployment::Quorum(self.config.quorum);
            return Facts { deployment, servers: join_all(visits).await };
        }
        let servers = vec![self.visit(&self.config, self.probe()).await];
        Facts { deployment: Deployment::Server, servers }
    }

    /// Asks all Sentinels side by side, and examines the master that most of them name.
    async fn sentinels(&self, group: &SentinelGroup) -> Facts {
        let ask = async |info: &ConnectionInfo| {
            let told = sentinels::ask(&self.config, &self.clock, info, &group.master).await;
            SentinelFacts { place: info.addr().to_string(), told }
        };
        let all = join_all(group.sentinels.iter().map(ask)).await;
        let mut sentinels = SentinelsTold { name: group.master.clone(), master: None, all };
        let vote = |named: Option<&NamedMaster>| named.map(|named| named.master.clone());
        let votes: Vec<_> = sentinels.answers().map(vote).collect();
        let mut servers = Vec::new();
        if let MasterVerdict::Named(place) = decide(&votes, sentinels.all.len(), None) {
            let mut master = self.visit_at(&place, self.config.at(&place), self.probe()).await;
            let at = format!("{place}, {NAMED_MASTER}");
            master.told = master.told.map_err(|error| of_named_master(error.from_endpoint(at)));
            servers.push(master);
            sentinels.master = Some(place);
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
        let covered = ranges.map(ExactSizeIterator::len).sum();
        let visits =
            masters.iter().map(|ClusterMaster { endpoint: place, slots, announced_to }| {
                let probe = probe_in(slots, self.runtime_id).ok().flatten();
                let config = self.config.at(place);
                self.visit_at(
                    place,
                    config.map(|config| config.of_cluster(announced_to.clone())),
                    probe,
                )
            });
        let servers = join_all(visits).await;
        Facts { deployment: Deployment::Cluster(Ok(covered)), servers }
    }

    async fn visit_at(
        &self,
        place: &Endpoint,
        config: Result<RedisConfig, StoreError>,
        probe: Option<LockName>,
    ) -> ServerFacts {
        match config {
            Ok(config) => self.visit(&config, probe).await,
            Err(error) => ServerFacts { place: place.to_string(), told: Err(error) },
        }
    }

    /// Makes a connection to a master, and asks for everything; `probe` is a lock that nobody uses, which
    /// lives there.
    async fn visit(&self, config: &RedisConfig, probe: Option<LockName>) -> ServerFacts {
        let place = config.address.info().addr().to_string();
        ServerFacts { place, told: self.told(config, probe).await }
    }

    async fn told(
        &self,
        config: &RedisConfig,
        probe: Option<LockName>,
    ) -> Result<ServerTold, StoreError> {
        let (clock, acks) = (&self.clock, self.expected.acks);
        let (connection, run) = dial_once(config, clock).await?;
        let client = ServerClient::new(connection, Arc::clone(clock), config.command_timeout);
        let (runs, connections) = connections(config, clock, run).await;
        let version = version(&client).await?;
        let (info, settings) = (questions::info(&client).await, questions::settings(&client).await);
        let role = if info.is_err() { questions::role(&client).await } else { None };
        let node = config.is_of_cluster().then(|| questions::cluster_node(&client, config));
        let channel = config.keys.channel(self.runtime_id);
        let acks = acks.are_asked().then(|| questions::acks(&client, acks));
        let locks = questions::lock_keys(&client, config, &info).await;
        Ok(ServerTold {
            version,
            runs,
            connections,
            info,
            locks,
            settings,
            role,
            node: OptionFuture::from(node).await,
            // One after the other from here on, so that each round trip is timed alone.
            timing: questions::timing(&client).await,
            scripts: match &probe {
                Some(probe) => run_scripts(&client, config, probe, &channel).await,
                None => Ok(()),
            },
            subscribes: subscribe(&client, &channel)
                .await
                .map_err(|error| in_namespace(&config.keys, error)),
            acks: OptionFuture::from(acks).await,
            mark: questions::mark(&client, config.keys.boot()).await.ok(),
        })
    }

    /// A lock that nobody uses.
    fn probe(&self) -> Option<LockName> {
        probe(self.runtime_id).ok()
    }
}

/// Makes more connections to the address beside the first one, all at one time; and the runs of the masters to
/// which they lead, if their servers tell them.
async fn connections(
    config: &RedisConfig,
    clock: &Arc<dyn Clock>,
    first: Option<String>,
) -> (BTreeSet<String>, Connections) {
    let dial = |_| dial_once(config, clock);
    let others = join_all((1..Connections::TRIED).map(dial)).await;
    let mut all = Connections { made: 1, failed: None };
    let mut runs: BTreeSet<_> = first.into_iter().collect();
    for other in others {
        match other {
            Ok((_, run)) => {
                all.made += 1;
                runs.extend(run);
            }
            Err(error) => all.failed = Some(error),
        }
    }
    (runs, all)
}

/// Runs every kind of command once on the keys of a lock, by text and by digest, as the check at
/// connect does.
async fn run_scripts(
    client: &ServerClient,
    config: &RedisConfig,
    probe: &LockName,
    channel: &str,
) -> Result<(), StoreError> {
    let mut connection = client.connection.clone();
    if client.is_silent() {
        return Err(unanswered());
    }
    // Both EVAL and EVALSHA: the user may lack the right to one of them.
    for (verb, has_body) in [("EVAL", true), ("EVALSHA", false)] {
        let tried = preflight(&mut connection, config, (probe, channel), has_body);
        client.in_time(tried).await.map_err(|_| not_run(verb, classify::unanswered()))??;
    }
    Ok(())
}

/// The name and the version of the server. `HELLO` is always allowed.
async fn version(client: &ServerClient) -> Result<String, StoreError> {
    let mut connection = client.connection.clone();
    let told = client.in_time(hello(&mut connection)).await;
    let told = told.map_err(|_| unanswered())?.map_err(|error| classify_dial(&error))?;
    let field = |name| told.get(name).and_then(text).unwrap_or_else(|| "unknown".into());
    Ok(format!("{} {}", field("server"), field("version")))
}

/// Subscribes to the messages about grants; the subscription ends with the connection.
async fn subscribe(client: &ServerClient, channel: &str) -> Result<(), StoreError> {
    let mut connection = client.connection.clone();
    let answer = client.in_time(connection.subscribe(channel)).await;
    answer.map_err(|_| unanswered())?.map_err(|error| classify_dial(&error))
}
