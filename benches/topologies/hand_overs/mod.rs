//! Contended locks: one on each master.

mod crew;
mod leasehold;
#[path = "../../contention/subjects/floor_queue.rs"]
mod queue;
mod round;
mod tally;
mod window;

use std::fmt;

use leasehold_core::Replication;
use redis::{Client, IntoConnectionInfo, ProtocolVersion, RedisError};

use self::queue::Channels;
use crate::{
    Failure,
    lengths::Lengths,
    pairs::TOPOLOGIES,
    replicas::one_replica,
    site::{Site, Topology},
    table::{Column, Key, Table},
};

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). Each lock runtime has a thread, as a process would, and
tasks for a lock on each master. handed/s: acquisitions by another task than the one before, on all
masters. × this: Leasehold's divided by this row's, median of the rounds' ratios. runtimes/s: those by
another runtime. µs: processor time for a hand-over, of all clients, of all masters, of all replicas.
p50, p99: how long an acquire takes. leasehold, 1: waits for one replica. Queue floor: minimal scripts,
without fences, renewal and dead waiters; sharded: on channels that do not cross the bus.";

/// What a round measures.
const COLUMNS: &[Column] = &[
    ("handed/s", "hand_overs_per_second", 0),
    ("runtimes/s", "between_runtimes_per_second", 0),
    ("client µs", "client_micros", 1),
    ("masters µs", "master_micros", 1),
    ("replicas µs", "replica_micros", 1),
    ("p50 µs", "p50_micros", 0),
    ("p99 µs", "p99_micros", 0),
];

/// How many lock runtimes want a lock, and with how many tasks each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    runtimes: usize,
    tasks: usize,
}

const LOADS: [Load; 2] = [Load { runtimes: 4, tasks: 8 }, Load { runtimes: 4, tasks: 1 }];

/// As rows are named.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runtimes, tasks } = self;
        write!(f, "{runtimes} × {tasks} per master")
    }
}

/// Who hands locks over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Leasehold with its default settings.
    Leasehold,
    /// Leasehold, which waits for a replica.
    Acknowledged,
    /// Minimal scripts that queue and push.
    Queue(Channels),
}

impl Subject {
    /// Those that can run: where there are replicas, and as the floor has one task in each process.
    fn of(site: &Site, load: Load) -> Vec<Self> {
        let can_run = |subject: &Self| match subject {
            Self::Leasehold => true,
            Self::Acknowledged => !site.replicas().is_empty(),
            Self::Queue(Channels::Plain) => load.tasks == 1,
            Self::Queue(Channels::Sharded) => load.tasks == 1 && site.topology.is_cluster(),
        };
        let floors = [Self::Queue(Channels::Plain), Self::Queue(Channels::Sharded)];
        let subjects = [Self::Leasehold, Self::Acknowledged].into_iter().chain(floors);
        subjects.filter(can_run).collect()
    }

    /// What acquires of Leasehold wait for.
    fn replication(self) -> Replication {
        match self {
            Self::Acknowledged => one_replica(),
            Self::Leasehold | Self::Queue(_) => Replication::NONE,
        }
    }

    /// What rows call it.
    fn name(self) -> &'static str {
        match self {
            Self::Leasehold => "leasehold",
            Self::Acknowledged => "leasehold, 1",
            Self::Queue(Channels::Plain) => "queue floor",
            Self::Queue(Channels::Sharded) => "queue floor, sharded",
        }
    }
}

/// Runs rounds of all subjects on all topologies in turns.
pub(crate) fn measure(lengths: Lengths) -> Result<Table, Failure> {
    let title = "contended locks, empty section";
    let mut table = Table::new("hand-overs", title, COLUMNS, Some("× this"), LEGEND);
    let sites = TOPOLOGIES.map(Topology::start);
    for round in 1..=lengths.rounds {
        for site in &sites {
            for load in LOADS {
                for subject in Subject::of(site, load) {
                    site.flush();
                    let values = round::run(site, load, subject, lengths)
                        .map_err(|failure| format!("{}, {load}: {failure}", site.topology))?;
                    table.add(Key::new(&site.topology, &load, subject.name()), values);
                }
            }
        }
        eprintln!("hand-overs: round {round} of {}", lengths.rounds);
    }
    Ok(table)
}

/// A client that sends small packets at once and hears what the server says unasked.
fn client(url: &str) -> Result<Client, RedisError> {
    let info = url.into_connection_info()?;
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    let redis = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    Client::open(info.set_tcp_settings(tcp).set_redis_settings(redis))
}
