//! What servers and Sentinels answered, before the rules judge it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
    time::Duration,
};

use leasehold_core::{QuorumSettings, StoreError};
use leasehold_redis::Endpoint;

/// An answer, or why there is none.
pub(crate) type Reading<T> = Result<T, NotRead>;

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotRead {
    /// The user lacks the right.
    Denied,
    /// The server does not have the command, as on some managed services.
    Missing,
    /// There was no answer in time, or the connection ended.
    Silent,
    /// The server refused, with these words.
    Refused(String),
    /// The answer is not what Redis answers.
    Strange,
}

/// The second half of a sentence about a command.
impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied => f.write_str("is denied to this user"),
            Self::Missing => f.write_str("does not exist on this server"),
            Self::Silent => f.write_str("was not answered"),
            Self::Refused(words) => write!(f, "was refused: {words}"),
            Self::Strange => f.write_str("was not answered as Redis does"),
        }
    }
}

/// All facts about one deployment.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) deployment: Deployment,
    /// The server, the master that the Sentinels name, or all masters of the Cluster or of the quorum.
    pub(crate) servers: Vec<ServerFacts>,
}

/// The topology of a deployment.
#[derive(Debug)]
pub(crate) enum Deployment {
    Server,
    Sentinels(SentinelsTold),
    /// How many slots have an owner; the error if no node answered.
    Cluster(Result<usize, StoreError>),
    /// Independent masters, of which a majority grants, and how they are used.
    Quorum(QuorumSettings),
}

impl Deployment {
    /// Whether a replica may become the master in this topology.
    pub(crate) fn fails_over(&self) -> bool {
        matches!(self, Self::Sentinels(_) | Self::Cluster(_))
    }
}

/// The facts about one master.
#[derive(Debug)]
pub(crate) struct ServerFacts {
    /// Where it listens.
    pub(crate) place: String,
    /// The error if no connection to it could be made.
    pub(crate) told: Result<ServerTold, StoreError>,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct ServerTold {
    /// Its name and version, as `redis 7.0.15`.
    pub(crate) version: String,
    /// The ids of the runs to which several connections to the address lead; empty if they are unknown.
    pub(crate) runs: BTreeSet<String>,
    /// How many of these connections there are.
    pub(crate) connections: Connections,
    /// The fields of `INFO`.
    pub(crate) info: Reading<Fields>,
    /// What share of its keys belongs to locks, if there are many and they may be looked at.
    pub(crate) locks: Option<LockKeys>,
    /// The answer to `CONFIG GET`; an empty one counts as not read.
    pub(crate) settings: Reading<Fields>,
    /// How many replicas `ROLE` names; asked only if `INFO` could not be read.
    pub(crate) role: Option<usize>,
    pub(crate) timing: Reading<RoundTrips>,
    /// Whether every kind of command could be run by scripts.
    pub(crate) scripts: Result<(), StoreError>,
    /// Whether messages about grants may be received.
    pub(crate) subscribes: Result<(), StoreError>,
    /// Whether `WAIT` or `WAITAOF` may be run, if acknowledgements are asked for.
    pub(crate) acks: Option<Reading<()>>,
    /// What a node says about its Cluster; `None` of other servers.
    pub(crate) node: Option<Reading<ClusterTold>>,
    /// What the boot mark of a quorum says, if it could be read; only a node of one has it.
    pub(crate) mark: Option<Mark>,
}

/// Connections to one address, made at one time: a balancer spreads them, and a server that is about to be full
/// refuses some.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// How many the server took.
    pub(crate) made: usize,
    /// Why one was not made.
    pub(crate) failed: Option<StoreError>,
}

impl Connections {
    /// How many are tried.
    pub(crate) const TRIED: usize = 4;
}

impl ServerTold {
    pub(crate) fn info(&self, field: &str) -> Option<&str> {
        self.info.as_ref().ok()?.get(field)
    }

    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.as_ref().ok()?.get(name)
    }

    /// The name of the policy by which the server evicts keys when its memory is full.
    pub(crate) fn policy(&self) -> Option<&str> {
        self.setting("maxmemory-policy").or_else(|| self.info("maxmemory_policy"))
    }

    /// How much memory the data may take, in bytes; 0 means that there is no limit.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        self.setting("maxmemory").or_else(|| self.info("maxmemory"))?.parse().ok()
    }

    /// Whether every write is written to a file.
    pub(crate) fn appends(&self) -> Option<bool> {
        let setting = self.setting("appendonly").map(|value| value == "yes");
        setting.or_else(|| Some(self.info("aof_enabled")? == "1"))
    }

    /// How many replicas the server sees.
    pub(crate) fn replicas(&self) -> Option<usize> {
        let of_node = || self.node.as_ref()?.as_ref().ok()?.replicas;
        let by_info = self.info.as_ref().ok().and_then(Fields::replicas);
        by_info.or(self.role).or_else(of_node)
    }
}

/// Fields with names, as in `INFO` and `CONFIG GET`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) BTreeMap<String, String>);

impl Fields {
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

    /// How many replicas keep up: they are online, and acknowledged within the last seconds.
    fn replicas(&self) -> Option<usize> {
        let listed: usize = self.number("connected_slaves")?;
        // Limited by the number of fields, whatever number the server claims.
        let listed = 0..listed.min(self.0.len());
        let replica = |number: usize| self.get(&format!("slave{number}"));
        Some(listed.filter_map(replica).filter(keeps_up).count())
    }
}

/// A replica acknowledges every second.
const MAX_LAG: u64 = 5;

/// Whether a line of `INFO` describes a replica that has all writes but those on the network.
fn keeps_up(replica: &&str) -> bool {
    let field = |name: &str| replica.split(',').find_map(|field| field.strip_prefix(name));
    let lag = field("lag=").and_then(|lag| lag.parse().ok()).unwrap_or(0);
    field("state=") == Some("online") && lag <= MAX_LAG
}

/// Some of the keys of a server, among which those of locks are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockKeys {
    /// How many keys the database has.
    pub(crate) all: u64,
    /// How many of them were looked at.
    pub(crate) sample: u64,
    /// How many of these are leases of locks, or their fences.
    pub(crate) of_locks: u64,
    /// How long those are together, in bytes.
    pub(crate) length: u64,
}

impl LockKeys {
    /// What a server needs for a free lock beside its name, in bytes.
    const BESIDE_NAME: u64 = 160;

    /// About how many locks there are, and how much memory they take, in bytes.
    pub(crate) fn estimate(self) -> (u64, u64) {
        let of_all = |sum: u64| {
            let scaled = u128::from(sum) * u128::from(self.all) / u128::from(self.sample.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        (of_all(self.of_locks), of_all(self.of_locks * Self::BESIDE_NAME + self.length))
    }
}

/// What a few round trips showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundTrips {
    pub(crate) median: Duration,
    /// How far the server's clock is from ours.
    pub(crate) offset: ClockOffset,
    /// How wrong the offset can be.
    pub(crate) margin: Duration,
}

/// How far a server's clock is from that of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockOffset {
    /// The server's clock is ahead.
    Ahead(Duration),
    /// The server's clock is behind.
    Behind(Duration),
}

impl ClockOffset {
    /// The offset of a clock that shows `server` when another shows `here`.
    pub(crate) fn between(server: Duration, here: Duration) -> Self {
        match server.checked_sub(here) {
            Some(ahead) => Self::Ahead(ahead),
            None => Self::Behind(here.saturating_sub(server)),
        }
    }

    /// The offset without its direction.
    pub fn by(self) -> Duration {
        match self {
            Self::Ahead(by) | Self::Behind(by) => by,
        }
    }
}

/// As `2.5s ahead`.
impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if matches!(self, Self::Ahead(_)) { "ahead" } else { "behind" };
        match u64::try_from(self.by().as_millis()).unwrap_or(u64::MAX) {
            0 => f.write_str("less than 1ms off"),
            millis => write!(f, "{:?} {way}", Duration::from_millis(millis)),
        }
    }
}

/// What a node says about its Cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClusterTold {
    /// The fields of `CLUSTER INFO`.
    pub(crate) info: Fields,
    /// How many healthy replicas this node has, by `CLUSTER SLOTS`.
    pub(crate) replicas: Option<usize>,
    /// What is said of an address that several nodes announce, by the same.
    pub(crate) shared: Option<String>,
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

/// The Sentinels of an address.
#[derive(Debug)]
pub(crate) struct SentinelsTold {
    /// The name of the master.
    pub(crate) name: String,
    /// The server that most of them name.
    pub(crate) master: Option<Endpoint>,
    /// All that the address lists.
    pub(crate) all: Vec<SentinelFacts>,
}

/// The facts about one Sentinel.
#[derive(Debug)]
pub(crate) struct SentinelFacts {
    pub(crate) place: String,
    /// What it knows of the master of that name, if it knows one; or why it did not answer.
    pub(crate) told: Result<Option<NamedMaster>, StoreError>,
}

/// The master that a Sentinel names.
#[derive(Debug)]
pub(crate) struct NamedMaster {
    pub(crate) master: Endpoint,
    pub(crate) watched: Reading<WatchedMaster>,
}

/// What a Sentinel knows of the master that it watches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WatchedMaster {
    /// How many Sentinels have to agree that the master is down.
    pub(crate) quorum: Option<usize>,
    /// How many replicas it knows.
    pub(crate) replicas: Option<usize>,
    /// How many other Sentinels it knows.
    pub(crate) others: Option<usize>,
    /// After how long without an answer it takes the master for dead.
    pub(crate) down_after: Option<Duration>,
    /// Whether it takes the master for dead now.
    pub(crate) is_down: bool,
}

impl SentinelsTold {
    /// What the Sentinels that answered name: the master, if they know one of that name.
    pub(crate) fn answers(&self) -> impl Iterator<Item = Option<&NamedMaster>> {
        self.all.iter().filter_map(|one| Some(one.told.as_ref().ok()?.as_ref()))
    }

    /// What the Sentinels that answered know of the master.
    pub(crate) fn watched(&self) -> impl Iterator<Item = &WatchedMaster> {
        self.answers().flatten().filter_map(|named| named.watched.as_ref().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_a_direction() {
        let at = Duration::from_millis;
        assert_eq!(ClockOffset::between(at(5), at(3)), ClockOffset::Ahead(at(2)));
        let behind = ClockOffset::between(at(3), at(5));
        assert_eq!((behind, behind.by()), (ClockOffset::Behind(at(2)), at(2)));
        let precise = ClockOffset::Ahead(Duration::from_nanos(2_500_000_017));
        assert_eq!(precise.to_string(), "2.5s ahead");
        assert_eq!(ClockOffset::Behind(Duration::ZERO).to_string(), "less than 1ms off");
    }
}
