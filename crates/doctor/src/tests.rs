//! What the tests of the rules begin with: servers and Sentinels that are well.

use std::{collections::BTreeSet, time::Duration};

use leasehold_core::{FenceSettings, Replication, Ttl};
use leasehold_redis::Endpoint;

use crate::{
    ClockOffset, Expected, Finding, Severity, Topic,
    facts::{
        Connections, Deployment, Fields, NamedMaster, RoundTrips, SentinelFacts, SentinelsTold,
        ServerTold, WatchedMaster,
    },
    rules::Case,
    values::{config, text},
};
use proptest::prelude::*;

/// One server, and what is expected of it.
pub(super) struct Scene {
    pub(super) told: ServerTold,
    pub(super) deployment: Deployment,
    pub(super) expected: Expected,
}

impl Scene {
    pub(super) fn of(told: ServerTold) -> Self {
        let expected = Expected {
            ttl: Ttl::default(),
            claim_window: Duration::from_secs(3),
            command_timeout: Duration::from_secs(2),
            fencing: FenceSettings::default(),
            acks: Replication::NONE,
        };
        Self { told, deployment: Deployment::Server, expected }
    }

    pub(super) fn asking(mut self, acks: Replication) -> Self {
        self.expected.acks = acks;
        self
    }

    pub(super) fn case(&self) -> Case<'_> {
        Case { told: &self.told, deployment: &self.deployment, expected: &self.expected }
    }
}

/// Acknowledgements of so many replicas.
pub(super) fn replicas(replicas: u8) -> Replication {
    Replication::wait(replicas, Duration::from_millis(500)).unwrap()
}

/// Acknowledgements of the disks of the master and of so many replicas.
pub(super) fn disks(replicas: u8) -> Replication {
    Replication::wait_aof(replicas, Duration::from_millis(500)).unwrap()
}

/// The fields of `INFO`.
pub(super) fn info(text: &str) -> Fields {
    let mut info = Fields::default();
    info.add(text);
    info
}

/// Changes a setting of a server.
pub(super) fn set(told: &mut ServerTold, name: &str, value: &str) {
    let settings = told.settings.as_mut().unwrap();
    settings.0.insert(name.to_owned(), value.to_owned());
}

/// One server of which no rule finds anything.
pub(super) fn healthy() -> ServerTold {
    let values = [
        ("maxmemory-policy", "noeviction"),
        ("maxmemory", "0"),
        ("appendonly", "yes"),
        ("appendfsync", "everysec"),
        ("save", ""),
        ("min-replicas-to-write", "0"),
        ("min-replicas-max-lag", "10"),
    ];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let timing = RoundTrips {
        median: Duration::from_micros(200),
        offset: ClockOffset::Ahead(Duration::from_micros(100)),
        margin: Duration::from_micros(100),
    };
    ServerTold {
        version: "redis 7.0.15".into(),
        runs: BTreeSet::from(["a".to_owned()]),
        connections: Connections { made: Connections::TRIED, failed: None },
        info: Ok(info("connected_slaves:0\r\naof_last_write_status:ok\r\n")),
        settings: Ok(Fields(values.into())),
        locks: None,
        role: None,
        timing: Ok(timing),
        scripts: Ok(()),
        subscribes: Ok(()),
        acks: None,
        node: None,
        mark: None,
    }
}

/// So many Sentinels that agree on a master with two replicas.
pub(super) fn group(count: usize) -> SentinelsTold {
    let master = || Endpoint { host: "m".into(), port: 6379 };
    let sentinel = |number| {
        let watched = WatchedMaster {
            quorum: Some(2),
            replicas: Some(2),
            others: Some(count - 1),
            down_after: Some(Duration::from_secs(5)),
            is_down: false,
        };
        let named = NamedMaster { master: master(), watched: Ok(watched) };
        SentinelFacts { place: format!("s{number}:26379"), told: Ok(Some(named)) }
    };
    let all = (0..count).map(sentinel).collect();
    SentinelsTold { name: "orders".into(), master: Some(master()), all }
}

/// The severity, topic and promises of each finding.
pub(super) fn seen(findings: &[Finding]) -> Vec<(Severity, Topic, &'static str)> {
    let promises = |finding: &Finding| {
        let numbers: Vec<_> = finding.promises.iter().map(ToString::to_string).collect();
        let known = ["", "P1", "P8", "P1 P2", "P1 P2 P7", "P5 P7 P10"];
        let joined = numbers.join(" ");
        known.into_iter().find(|known| *known == joined).unwrap_or("another")
    };
    findings.iter().map(|one| (one.severity, one.topic, promises(one))).collect()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_text_of_info_is_read(told in text()) {
        let mut info = Fields::default();
        info.add(&told);
        info.number::<u64>("maxmemory");
    }
}
