//! Uncontended acquire and release.

mod round;

use std::time::Duration;

use leasehold::LockRuntime;
pub(crate) use round::{COLUMNS, Load, run};
use tokio::runtime::Builder;

use crate::{
    Failure,
    lengths::Lengths,
    site::{Site, Topology},
    subjects::{Fenced, Floor, on_each},
    table::{Key, Table},
};

/// Where locks live, in the order of the tables.
pub(crate) const TOPOLOGIES: [Topology; 5] = [
    Topology::One,
    Topology::Sentinel,
    Topology::Cluster(1),
    Topology::Apart,
    Topology::Cluster(3),
];

/// How many tasks there are for each master.
pub(crate) const TASKS: [usize; 2] = [1, 64];

/// How long a runtime may take to leave.
const PATIENCE: Duration = Duration::from_secs(5);

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). × this: Leasehold's pairs/s divided by this row's, median
of the rounds' ratios. µs: processor time for a pair, of the client, of all masters, of all replicas.
p50, p99: how long a pair takes. Floor: Leasehold's scripts, called without it. Servers that stand
apart have the same names as the masters of a Cluster.";

/// Who takes locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Leasehold with its default settings.
    Leasehold,
    /// The scripts of Leasehold, called without it.
    Floor,
    /// Two scripts with a fence that promise nothing else.
    Fenced,
}

impl Subject {
    pub(crate) const ALL: [Self; 3] = [Self::Leasehold, Self::Floor, Self::Fenced];

    /// What rows call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Leasehold => "leasehold",
            Self::Floor => "floor",
            Self::Fenced => "fenced scripts",
        }
    }
}

/// What is measured, and where.
struct Plan<'a> {
    name: &'static str,
    title: &'static str,
    topologies: &'a [Topology],
    subjects: &'a [Subject],
}

/// Runs rounds of all subjects on all topologies in turns.
pub(crate) fn measure(lengths: Lengths) -> Result<Table, Failure> {
    let (name, title) = ("pairs", "uncontended acquire and release");
    let plan = Plan { name, title, topologies: &TOPOLOGIES, subjects: &Subject::ALL };
    plan.measure(lengths)
}

/// Runs more rounds of Leasehold alone, where it is to scale: a single round varies by a third.
pub(crate) fn scale(lengths: Lengths) -> Result<Table, Failure> {
    let (name, title) = ("scale", "uncontended acquire and release, more rounds");
    let topologies = &[Topology::Cluster(1), Topology::Apart, Topology::Cluster(3)];
    let plan = Plan { name, title, topologies, subjects: &[Subject::Leasehold] };
    plan.measure(Lengths { rounds: lengths.rounds * 3, ..lengths })
}

impl Plan<'_> {
    fn measure(&self, lengths: Lengths) -> Result<Table, Failure> {
        let mut table = Table::new(self.name, self.title, COLUMNS, Some("× this"), LEGEND);
        let sites: Vec<_> = self.topologies.iter().map(|topology| topology.start()).collect();
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        for round in 1..=lengths.rounds {
            for load in TASKS.map(|each| Load { each, lengths }) {
                for site in &sites {
                    for subject in self.subjects {
                        site.flush();
                        let values = runtime.block_on(subject.round(site, load))?;
                        table.add(Key::new(&site.topology, &load, subject.name()), values);
                    }
                }
            }
            eprintln!("{}: round {round} of {}", self.name, lengths.rounds);
        }
        Ok(table)
    }
}

impl Subject {
    async fn round(self, site: &Site, load: Load) -> Result<Vec<f64>, Failure> {
        match self {
            Self::Leasehold => {
                let connect = async |address: &str| Ok(LockRuntime::connect(address).await?);
                leasehold(site, load, &on_each(site.addresses(), connect).await?).await
            }
            Self::Floor => {
                let floors = on_each(site.urls(), Floor::connect).await?;
                run(site, load, |name| floors[site.master_of(name)].clone()).await
            }
            Self::Fenced => {
                let scripts = on_each(site.urls(), Fenced::connect).await?;
                run(site, load, |name| scripts[site.master_of(name)].clone()).await
            }
        }
    }
}

/// A round of lock runtimes, one for each address of a site; they leave nothing behind.
pub(crate) async fn leasehold(
    site: &Site,
    load: Load,
    runtimes: &[LockRuntime],
) -> Result<Vec<f64>, Failure> {
    let values = run(site, load, |name| runtimes[site.address_of(name)].clone()).await;
    for runtime in runtimes {
        // The next round has empty servers.
        let _ = runtime.shutdown(PATIENCE).await;
    }
    values
}
