use std::{collections::BTreeMap, str::FromStr, sync::Arc, time::Duration};

use futures_util::future::join_all;
use redis::{AsyncConnectionConfig, ConnectionInfo, cmd};

use super::{asker::Asker, examiner::Examiner, server::Visit};
use crate::{
    clock::within,
    diagnosis::facts::{
        Facts, Group, NotRead, Reading, SentinelFacts, SentinelTold, ServerFacts, Topology, Watched,
    },
    redis::{
        address::{RedisAddress, SentinelGroup},
        classify::classify_dial,
        endpoint::Endpoint,
        sentinel::{MasterVerdict, client_of, decide, unreachable_one},
        store::probe,
    },
};

/// Asks all Sentinels side by side, and examines the master that most of them name.
pub(super) async fn gather(examiner: &Examiner, group: &SentinelGroup) -> Facts {
    let asking = group.sentinels.iter().map(|info| sentinel(examiner, info, &group.master));
    let (sentinels, votes): (Vec<_>, Vec<_>) = join_all(asking).await.into_iter().unzip();
    let votes: Vec<Option<Endpoint>> = votes.into_iter().flatten().collect();
    let master = match decide(&votes, sentinels.len(), None) {
        MasterVerdict::Named(place) => Some(place),
        MasterVerdict::Unknown | MasterVerdict::Open => None,
    };
    let named = master.as_ref().map(ToString::to_string);
    let group = Group { name: group.master.clone(), master: named, sentinels };
    let mut servers = Vec::new();
    if let Some(place) = master {
        servers.push(visit(examiner, &place).await);
    }
    Facts { topology: Topology::Sentinels(group), servers }
}

async fn visit(examiner: &Examiner, master: &Endpoint) -> ServerFacts {
    match master.info(examiner.config.address.info()) {
        Ok(info) => {
            let mut config = examiner.config.clone();
            config.address = RedisAddress::of_node(info);
            let probe = probe(examiner.runtime_id).ok();
            Visit::new(examiner, config, probe).facts().await
        }
        Err(error) => ServerFacts { place: master.to_string(), told: Err(classify_dial(&error)) },
    }
}

/// Asks one Sentinel. With its facts comes its vote, if it answered.
async fn sentinel(
    examiner: &Examiner,
    info: &ConnectionInfo,
    name: &str,
) -> (SentinelFacts, Option<Option<Endpoint>>) {
    let place = info.addr().to_string();
    match told(examiner, info, name).await {
        Ok((vote, told)) => (SentinelFacts { place, told: Ok(told) }, Some(vote)),
        Err(words) => (SentinelFacts { place, told: Err(words) }, None),
    }
}

async fn told(
    examiner: &Examiner,
    info: &ConnectionInfo,
    name: &str,
) -> Result<(Option<Endpoint>, SentinelTold), String> {
    let Examiner { config, clock, .. } = examiner;
    let client = client_of(config, info, config.address.info());
    let client = client.map_err(|error| unreachable_one(&error))?;
    let settings = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(config.connect_timeout))
        .set_response_timeout(None);
    let until = clock.now() + config.connect_timeout;
    let connecting = client.get_multiplexed_async_connection_with_config(&settings);
    let connected = within(&**clock, until, connecting).await;
    let connection = connected.ok_or("it is silent")?.map_err(|error| unreachable_one(&error))?;
    // It has the connect timeout for all its answers.
    let asker = Asker::new(connection, Arc::clone(clock), config.connect_timeout / 2);
    let ask = |what: &str| {
        let mut command = cmd("SENTINEL");
        command.arg(what).arg(name);
        command
    };
    let named: Reading<Option<(String, u16)>> =
        asker.ask_for(&ask("GET-MASTER-ADDR-BY-NAME")).await;
    let named = named.map_err(|why| match why {
        NotRead::Missing => {
            "what answers is no Sentinel; write the port of the Sentinel".to_owned()
        }
        why => format!("SENTINEL GET-MASTER-ADDR-BY-NAME {why}"),
    })?;
    let vote = named.map(|(host, port)| Endpoint { host, port });
    let watched = match &vote {
        Some(_) => Some(asker.ask_for(&ask("MASTER")).await.map(|told| watched(&told))),
        None => None,
    };
    let master = vote.as_ref().map(ToString::to_string);
    Ok((vote, SentinelTold { master, watched }))
}

/// Reads the answer to `SENTINEL MASTER`.
fn watched(told: &BTreeMap<String, String>) -> Watched {
    fn number<T: FromStr>(told: &BTreeMap<String, String>, name: &str) -> Option<T> {
        told.get(name)?.parse().ok()
    }
    let is_down = |flags: &String| flags.split(',').any(|flag| matches!(flag, "s_down" | "o_down"));
    Watched {
        quorum: number(told, "quorum"),
        replicas: number(told, "num-slaves"),
        others: number(told, "num-other-sentinels"),
        down_after: number(told, "down-after-milliseconds").map(Duration::from_millis),
        is_down: told.get("flags").is_some_and(is_down),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sentinel_watches() {
        let told = [
            ("quorum", "2"),
            ("num-slaves", "1"),
            ("num-other-sentinels", "2"),
            ("down-after-milliseconds", "5000"),
            ("flags", "master,s_down"),
        ];
        let told = told.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let seen = Watched {
            quorum: Some(2),
            replicas: Some(1),
            others: Some(2),
            down_after: Some(Duration::from_secs(5)),
            is_down: true,
        };
        assert_eq!(watched(&told), seen);
        assert_eq!(watched(&BTreeMap::new()), Watched::default());
    }
}
