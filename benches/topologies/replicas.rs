//! What it costs to wait for a replica.

use std::time::Duration;

use leasehold::{LockRuntime, redis::Replication};
use tokio::runtime::Builder;

use crate::{
    Failure,
    lengths::Lengths,
    pairs::{self, COLUMNS, Load, TASKS},
    site::{Site, Topology},
    subjects::{Fenced, Waiting, on_each},
    table::{Key, Table},
};

/// Where there are replicas.
const TOPOLOGIES: [Topology; 2] = [Topology::Sentinel, Topology::Replicated];

/// What an acquire waits for.
pub(crate) fn one_replica() -> Replication {
    Replication::wait(1, Duration::from_secs(1)).expect("in range")
}

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). × this: the pairs/s of Leasehold, which waits for nobody,
divided by this row's, median of the rounds' ratios. leasehold, 1: each acquire waits for one replica.
The floors are the fenced scripts; one of them sends WAIT 1 with each acquire, on as many connections as
there are tasks.";

/// Who takes locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// Leasehold, which waits for nobody.
    Leasehold,
    /// Leasehold, which waits for a replica.
    Acknowledged,
    /// Two scripts with a fence that promise nothing else.
    Fenced,
    /// The same, which wait for a replica.
    Waiting,
}

impl Subject {
    const ALL: [Self; 4] = [Self::Leasehold, Self::Acknowledged, Self::Fenced, Self::Waiting];

    /// What rows call it.
    fn name(self) -> &'static str {
        match self {
            Self::Leasehold => "leasehold",
            Self::Acknowledged => "leasehold, 1",
            Self::Fenced => "fenced scripts",
            Self::Waiting => "fenced, WAIT 1",
        }
    }

    async fn round(self, site: &Site, load: Load) -> Result<Vec<f64>, Failure> {
        match self {
            Self::Leasehold => {
                let runtime = LockRuntime::connect(site.addresses()[0].as_str()).await?;
                pairs::leasehold(site, load, &[runtime]).await
            }
            Self::Acknowledged => {
                let builder = LockRuntime::builder().replication(one_replica());
                let runtime = builder.connect(site.addresses()[0].as_str()).await?;
                pairs::leasehold(site, load, &[runtime]).await
            }
            Self::Fenced => {
                let scripts = on_each(site.urls(), Fenced::connect).await?;
                pairs::run(site, load, |name| scripts[site.master_of(name)].clone()).await
            }
            Self::Waiting => {
                // Every task may be at the same master.
                let tasks = load.each * site.masters().len();
                let connect = async |url: &str| Waiting::connect(url, tasks).await;
                let scripts = on_each(site.urls(), connect).await?;
                pairs::run(site, load, |name| scripts[site.master_of(name)].clone()).await
            }
        }
    }
}

/// Runs rounds of all subjects in turns.
pub(crate) fn measure(lengths: Lengths) -> Result<Table, Failure> {
    let title = "acquires that wait for a replica, uncontended";
    let mut table = Table::new("replicas", title, COLUMNS, Some("× this"), LEGEND);
    let sites = TOPOLOGIES.map(Topology::start);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    for round in 1..=lengths.rounds {
        for site in &sites {
            for load in TASKS.map(|each| Load { each, lengths }) {
                for subject in Subject::ALL {
                    site.flush();
                    let values = runtime.block_on(subject.round(site, load))?;
                    table.add(Key::new(&site.topology, &load, subject.name()), values);
                }
            }
        }
        eprintln!("replicas: round {round} of {}", lengths.rounds);
    }
    Ok(table)
}
