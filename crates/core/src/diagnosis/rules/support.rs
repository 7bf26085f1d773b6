//! What the tests of the rules begin with: servers and Sentinels that are well.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::Case;
use crate::{
    diagnosis::{
        ClockOffset, Expected, Finding, Severity, Topic,
        facts::{
            Group, Info, SentinelFacts, SentinelTold, Settings, Timing, Told, Topology, Version,
            Watched,
        },
    },
    store::FenceSettings,
    types::{Replication, Ttl},
};

/// One server, and what is expected of it.
pub(in crate::diagnosis) struct Scene {
    pub(in crate::diagnosis) told: Told,
    pub(in crate::diagnosis) topology: Topology,
    pub(in crate::diagnosis) expected: Expected,
}

impl Scene {
    pub(in crate::diagnosis) fn of(told: Told) -> Self {
        let expected = Expected {
            ttl: Ttl::default(),
            claim_window: Duration::from_secs(3),
            command_timeout: Duration::from_secs(2),
            fencing: FenceSettings::default(),
            acks: Replication::NONE,
        };
        Self { told, topology: Topology::Server, expected }
    }

    pub(in crate::diagnosis) fn asking(mut self, acks: Replication) -> Self {
        self.expected.acks = acks;
        self
    }

    pub(super) fn case(&self) -> Case<'_> {
        Case { told: &self.told, topology: &self.topology, expected: &self.expected }
    }
}

/// Acknowledgements of so many replicas.
pub(in crate::diagnosis) fn replicas(replicas: u8) -> Replication {
    Replication::wait(replicas, Duration::from_millis(500)).unwrap()
}

/// Acknowledgements of the disks of the master and of so many replicas.
pub(in crate::diagnosis) fn disks(replicas: u8) -> Replication {
    Replication::wait_aof(replicas, Duration::from_millis(500)).unwrap()
}

/// The fields of `INFO`.
pub(in crate::diagnosis) fn info(text: &str) -> Info {
    let mut info = Info::default();
    info.add(text);
    info
}

/// One server of which no rule finds anything.
pub(in crate::diagnosis) fn healthy() -> Told {
    let values = [
        ("maxmemory-policy", "noeviction"),
        ("maxmemory", "0"),
        ("appendonly", "yes"),
        ("appendfsync", "everysec"),
        ("save", ""),
        ("min-replicas-to-write", "0"),
        ("min-replicas-max-lag", "10"),
    ];
    let values: BTreeMap<_, _> = values.map(|(name, value)| (name, value.to_owned())).into();
    let timing = Timing {
        round_trip: Duration::from_micros(200),
        offset: ClockOffset::Ahead(Duration::from_micros(100)),
        margin: Duration::from_micros(100),
    };
    Told {
        version: Version { product: "redis".into(), number: "7.0.15".into() },
        runs: BTreeSet::from(["a".to_owned()]),
        info: Ok(info("connected_slaves:0\r\naof_last_write_status:ok\r\n")),
        settings: Settings { values, not_read: None },
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
pub(in crate::diagnosis) fn group(count: usize) -> Group {
    let sentinel = |number| {
        let watched = Watched {
            quorum: Some(2),
            replicas: Some(2),
            others: Some(count - 1),
            down_after: Some(Duration::from_secs(5)),
            is_down: false,
        };
        let told = SentinelTold { master: Some("m:6379".into()), watched: Some(Ok(watched)) };
        SentinelFacts { place: format!("s{number}:26379"), told: Ok(told) }
    };
    let sentinels = (0..count).map(sentinel).collect();
    Group { name: "orders".into(), master: Some("m:6379".into()), sentinels }
}

/// The severity, topic and promises of each finding.
pub(in crate::diagnosis) fn seen(findings: &[Finding]) -> Vec<(Severity, Topic, &'static str)> {
    let promises = |finding: &Finding| {
        let numbers: Vec<_> = finding.promises.iter().map(ToString::to_string).collect();
        let known = ["", "P1", "P8", "P1 P2", "P1 P2 P7", "P5 P7 P10"];
        let joined = numbers.join(" ");
        known.into_iter().find(|known| *known == joined).unwrap_or("another")
    };
    findings.iter().map(|one| (one.severity, one.topic, promises(one))).collect()
}
