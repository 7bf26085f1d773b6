use std::{collections::BTreeSet, iter, sync::Arc};

use futures_util::future::{OptionFuture, join_all};
use leasehold_core::{Clock, LockName, Replication, RuntimeId, StoreError};
use leasehold_redis::{
    RedisConfig, classify::classify_dial, decode::text, dial_once, hello, preflight,
};

use super::{
    client::{ServerClient, unanswered},
    questions,
};
use crate::facts::{ServerFacts, ServerTold};

/// On how many connections the master of an address is looked at: a balancer spreads them.
const CONNECTIONS: usize = 4;

/// A look at one master.
pub(super) struct Visit<'a> {
    /// How to reach it.
    pub(super) config: RedisConfig,
    pub(super) clock: &'a Arc<dyn Clock>,
    pub(super) runtime_id: RuntimeId,
    /// Which acknowledgements are asked for.
    pub(super) acks: Replication,
    /// A lock that nobody uses, which lives there.
    pub(super) probe: Option<LockName>,
    pub(super) is_of_quorum: bool,
}

impl Visit<'_> {
    /// Makes a connection and asks for everything.
    pub(super) async fn facts(&self) -> ServerFacts {
        let place = self.config.address.info().addr().to_string();
        ServerFacts { place, told: self.told().await }
    }

    async fn told(&self) -> Result<ServerTold, StoreError> {
        let (connection, run) = dial_once(&self.config, self.clock).await?;
        let client =
            ServerClient::new(connection, Arc::clone(self.clock), self.config.command_timeout);
        let runs = OptionFuture::from(run.map(|first| self.runs(first))).await;
        let version = version(&client).await?;
        let (info, settings) = (questions::info(&client).await, questions::settings(&client).await);
        let role = OptionFuture::from(info.is_err().then(|| questions::role(&client))).await;
        let node = self.config.is_of_cluster();
        let node = node.then(|| questions::cluster_node(&client, &self.config));
        let node = OptionFuture::from(node).await;
        // One after the other from here on, so that each round trip is timed alone.
        let timing = questions::timing(&client).await;
        let channel = self.config.keys.channel(self.runtime_id);
        let scripts = match &self.probe {
            Some(probe) => self.run_scripts(&client, probe, &channel).await,
            None => Ok(()),
        };
        let subscribes = subscribe(&client, &channel).await;
        let acks = self.acks.are_asked().then(|| questions::acks(&client, self.acks));
        let acks = OptionFuture::from(acks).await;
        let mark = self.is_of_quorum.then(|| questions::mark(&client, self.config.keys.boot()));
        let mark = OptionFuture::from(mark).await;
        Ok(ServerTold {
            version,
            runs: runs.unwrap_or_default(),
            info,
            settings,
            role,
            timing,
            scripts,
            subscribes,
            acks,
            node,
            mark,
        })
    }

    /// The runs of the masters to which several connections lead, all made at one time. One that cannot
    /// be made is left out.
    async fn runs(&self, first: String) -> BTreeSet<String> {
        let dial = |_| dial_once(&self.config, self.clock);
        let others = join_all((1..CONNECTIONS).map(dial)).await;
        iter::once(first).chain(others.into_iter().flatten().filter_map(|(_, run)| run)).collect()
    }

    /// Runs every kind of command once on the keys of a lock, by text and by digest, as the check at
    /// connect does.
    async fn run_scripts(
        &self,
        client: &ServerClient,
        probe: &LockName,
        channel: &str,
    ) -> Result<(), StoreError> {
        let mut connection = client.connection.clone();
        // Both EVAL and EVALSHA: the user may lack the right to one of them.
        for has_body in [true, false] {
            let tried = preflight(&mut connection, &self.config, (probe, channel), has_body);
            client.in_time(tried).await.map_err(|_| unanswered())??;
        }
        Ok(())
    }
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
