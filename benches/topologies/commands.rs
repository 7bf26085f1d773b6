//! Processor time of the server for each kind of command.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Builder;

use crate::{
    Failure,
    lengths::Lengths,
    locks::{Actors, Step},
    site::{Site, Topology},
    table::{Column, Key, Table},
    usage::{self, count, micros},
};

/// A server, and a node of a Cluster: that is what a shard is.
const TOPOLOGIES: [Topology; 2] = [Topology::One, Topology::Cluster(1)];

/// How many commands are on their way at once: one, or one of each task.
const LOADS: [(&str, usize); 2] = [("alone", 1), ("64 side by side", 64)];

/// As many as the library renews in one call, and as many heartbeats as it sends in one.
const BATCHES: [Step; 2] = [Step::Renew(256), Step::Heartbeat(64)];

/// In the order in which they are taken; those that are measured are marked.
const STEPS: [(Step, bool); 18] = [
    // Names that were used before have their counter.
    (Step::Acquire(0), false),
    (Step::Release, false),
    (Step::Acquire(0), true),
    (Step::Release, true),
    (Step::Acquire(0), false),
    (Step::Renew(1), true),
    (BATCHES[0], true),
    (Step::Try(1), true),
    (Step::Queue(1), true),
    (Step::Heartbeat(1), true),
    (BATCHES[1], true),
    (Step::Queue(2), false),
    // Two wait: the second one stays behind, as in a crowd.
    (Step::ReleaseAndQueue, true),
    (Step::Take, false),
    (Step::Release, true),
    (Step::Take, false),
    (Step::Release, false),
    (Step::Take, false),
];

const LEGEND: &str = "\
Medians of interleaved rounds (least..most). server µs: all processor time of the server for a command,
also for its reading, its answer and the messages that it publishes. script µs: the part inside the
scripts. cmd: calls of scripts for a command, of clients. Commands of one moment share a call, except
on a Cluster. A release that hands over has a message; the second row of it queues the holder anew.";

const COLUMNS: &[Column] =
    &[("server µs", "server_micros", 1), ("script µs", "script_micros", 1), ("calls", "calls", 3)];

/// Runs rounds of all kinds.
pub(crate) fn measure(lengths: Lengths) -> Result<Table, Failure> {
    let title = "processor time of the server for a command";
    let mut table = Table::new("commands", title, COLUMNS, None, LEGEND);
    let sites = TOPOLOGIES.map(Topology::start);
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    for round in 1..=lengths.rounds {
        for site in &sites {
            for (load, tasks) in LOADS {
                site.flush();
                for (step, values) in runtime.block_on(steps(site, lengths.commands, tasks))? {
                    table.add(Key::new(&site.topology, &step, load), values);
                }
            }
        }
        eprintln!("commands: round {round} of {}", lengths.rounds);
    }
    Ok(table)
}

/// Takes all steps with so many locks, and tells what the measured ones took.
async fn steps(
    site: &Site,
    locks: usize,
    tasks: usize,
) -> Result<Vec<(String, Vec<f64>)>, Failure> {
    let actors = Arc::new(Actors::connect(&site.addresses()[0]).await?);
    let mut all = Actors::locks(locks, tasks)?;
    let mut taken = Vec::new();
    let mut hands_over = false;
    for (step, is_measured) in STEPS {
        // A batch is one command of one task.
        if BATCHES.contains(&step) && tasks > 1 {
            continue;
        }
        let before = Used::of(site);
        all.step(&actors, step).await?;
        let used = Used::of(site).since(&before);
        hands_over |= matches!(step, Step::Queue(_));
        if is_measured {
            let name = match step {
                Step::Release if hands_over => "release, hands over".into(),
                Step::ReleaseAndQueue => "release, hands over, queues".into(),
                step => step.to_string(),
            };
            taken.push((name, used.each(count(locks))));
        }
    }
    Ok(taken)
}

/// What a server has used.
#[derive(Debug, Clone, Copy)]
struct Used {
    cpu: Duration,
    scripts: Duration,
    calls: f64,
}

impl Used {
    fn of(site: &Site) -> Self {
        let server = &site.masters()[0];
        let (scripts, calls) = usage::scripts(server);
        Self { cpu: usage::cpu(server), scripts, calls }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            scripts: self.scripts.saturating_sub(earlier.scripts),
            calls: self.calls - earlier.calls,
        }
    }

    /// For each of so many.
    fn each(&self, number: f64) -> Vec<f64> {
        vec![micros(self.cpu) / number, micros(self.scripts) / number, self.calls / number]
    }
}
