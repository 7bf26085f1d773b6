use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    time::Duration,
};

use super::{NotRead, Reading};
use crate::{diagnosis::ClockOffset, store::StoreError};

/// What a server has told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) version: Version,
    /// The ids of the runs to which several connections to the address lead; empty if they are not told.
    pub(crate) runs: BTreeSet<String>,
    pub(crate) info: Reading<Info>,
    pub(crate) settings: Settings,
    /// How many replicas `ROLE` names; asked only where `INFO` told nothing.
    pub(crate) role: Option<Reading<usize>>,
    pub(crate) timing: Reading<Timing>,
    /// Whether every kind of command could be run by scripts.
    pub(crate) scripts: Result<(), StoreError>,
    /// Whether messages about grants may be received.
    pub(crate) subscribes: Result<(), StoreError>,
    /// Whether `WAIT` or `WAITAOF` may be run, if acknowledgements are asked for.
    pub(crate) acks: Option<Reading<()>>,
    /// What a node says about its Cluster; `None` of other servers.
    pub(crate) node: Option<Reading<Node>>,
    /// What its boot mark says; `None` of a server that is no node of a quorum.
    pub(crate) mark: Option<Reading<Mark>>,
}

/// Whether a node of a quorum counts, by its boot mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// No process has seen it since it lost its data, or since it is new.
    Missing,
    /// It stays out for so long.
    Out(Duration),
    /// It counts.
    Counts,
}

/// The name and version of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) product: String,
    pub(crate) number: String,
}

impl Version {
    /// Whether the version is at least this one.
    pub(crate) fn is_at_least(&self, major: u32, minor: u32) -> bool {
        let mut parts = self.number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (major, minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.product, self.number)
    }
}

/// The fields of `INFO`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Info(BTreeMap<String, String>);

impl Info {
    /// Adds the fields of a section.
    pub(crate) fn add(&mut self, section: &str) {
        let fields = section.lines().filter_map(|line| line.trim().split_once(':'));
        self.0.extend(fields.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    /// How many replicas keep up: they are online, and were heard within the last seconds.
    fn replicas(&self) -> Option<usize> {
        let listed: usize = self.number("connected_slaves")?;
        // No more than there are fields, however many the server says that it has.
        let listed = 0..listed.min(self.0.len());
        let replica = |number: usize| self.get(&format!("slave{number}"));
        Some(listed.filter_map(replica).filter(keeps_up).count())
    }
}

/// A replica acknowledges every second.
const MAX_LAG: u64 = 5;

/// Whether `INFO` tells of a replica that has what the master has, but for the lag of the network.
fn keeps_up(replica: &&str) -> bool {
    let field = |name: &str| replica.split(',').find_map(|field| field.strip_prefix(name));
    let lag = field("lag=").and_then(|lag| lag.parse().ok()).unwrap_or(0);
    field("state=") == Some("online") && lag <= MAX_LAG
}

/// The settings that were read by `CONFIG GET`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) values: BTreeMap<&'static str, String>,
    /// Why none could be read.
    pub(crate) not_read: Option<NotRead>,
}

impl Settings {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }
}

/// What a few round trips told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Their median.
    pub(crate) round_trip: Duration,
    /// How far the server's clock is from ours.
    pub(crate) offset: ClockOffset,
    /// How wrong the offset can be.
    pub(crate) margin: Duration,
}

/// What a node says about its Cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// The fields of `CLUSTER INFO`.
    pub(crate) info: Info,
    /// How many replicas of this node are well, as `CLUSTER SLOTS` tells.
    pub(crate) replicas: Option<usize>,
}

impl Told {
    /// What becomes of the keys when the memory is full.
    pub(crate) fn policy(&self) -> Option<&str> {
        self.settings.get("maxmemory-policy").or_else(|| self.info()?.get("maxmemory_policy"))
    }

    /// How much memory the data may take, in bytes; 0 means that there is no limit.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        self.settings.number("maxmemory").or_else(|| self.info()?.number("maxmemory"))
    }

    /// Whether every write is written to a file.
    pub(crate) fn appends(&self) -> Option<bool> {
        let setting = self.settings.get("appendonly").map(|value| value == "yes");
        setting.or_else(|| Some(self.info()?.get("aof_enabled")? == "1"))
    }

    /// How many replicas the server sees.
    pub(crate) fn replicas(&self) -> Option<usize> {
        let of_node = || self.node.as_ref()?.as_ref().ok()?.replicas;
        let by_role = || self.role.as_ref()?.as_ref().ok().copied();
        self.info().and_then(Info::replicas).or_else(by_role).or_else(of_node)
    }

    pub(crate) fn info(&self) -> Option<&Info> {
        self.info.as_ref().ok()
    }
}
