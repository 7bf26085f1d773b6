#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

//! What renewals cost that wait for a replica.

use std::{sync::Arc, time::Instant};

use tokio::runtime::Builder;

use crate::{
    Failure,
    lengths::Lengths,
    locks::{Actors, Step},
    site::{Site, Topology},
    table::{Column, Key, Table},
    usage::{count, cpu_of, micros},
};

/// Where there are replicas.
const TOPOLOGIES: [Topology; 2] = [Topology::Sentinel, Topology::Replicated];

/// As many as the library gives the store at once.
const BATCH: usize = 256;

/// Each waits for the one before, as a process that renews does.
const STEPS: [(Step, &str); 2] = [
    (Step::Renew(BATCH), "waits for nobody"),
    (Step::RenewAcknowledged(BATCH), "waits for 1 replica"),
];

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). A process renews leases, 256 at a time. µs: processor time
for a renewal, of all masters, of all replicas. With Sentinels the 256 share a call and a wait. On a
Cluster each has a call of its own; those that wait do so one after the other at each master.";

const COLUMNS: &[Column] = &[
    ("renewals/s", "renewals_per_second", 0),
    ("masters µs", "master_micros", 1),
    ("replicas µs", "replica_micros", 1),
];

/// Runs rounds of all kinds.
pub(crate) fn measure(lengths: Lengths) -> Result<Table, Failure> {
    let title = "renewals that wait for a replica";
    let mut table = Table::new("renewals", title, COLUMNS, None, LEGEND);
    let sites = TOPOLOGIES.map(Topology::start);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    for round in 1..=lengths.rounds {
        for site in &sites {
            site.flush();
            for (who, values) in runtime.block_on(steps(site, lengths.commands))? {
                table.add(Key::new(&site.topology, &"", who), values);
            }
        }
        eprintln!("renewals: round {round} of {}", lengths.rounds);
    }
    Ok(table)
}

/// Takes so many locks, and tells what each kind of renewal costs.
async fn steps(site: &Site, locks: usize) -> Result<Vec<(&'static str, Vec<f64>)>, Failure> {
    let actors = Arc::new(Actors::connect(&site.addresses()[0]).await?);
    let mut all = Actors::locks(locks, 1)?;
    all.step(&actors, Step::Acquire(0)).await?;
    // The connections of each kind are made before it is measured.
    for (step, _) in STEPS {
        all.step(&actors, step).await?;
    }
    let mut taken = Vec::new();
    for (step, who) in STEPS {
        let used = || [cpu_of(site.masters()), cpu_of(site.replicas())];
        let (before, began) = (used(), Instant::now());
        all.step(&actors, step).await?;
        let (seconds, after) = (began.elapsed().as_secs_f64(), used());
        let each = |i: usize| micros(after[i].saturating_sub(before[i])) / count(locks);
        taken.push((who, vec![count(locks) / seconds, each(0), each(1)]));
    }
    Ok(taken)
}
