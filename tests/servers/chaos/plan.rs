use std::{collections::HashMap, env, time::Duration};

use super::site::Topology;

/// Sets parameters of the run, as `key=value` with spaces between them.
const VARIABLE: &str = "LEASEHOLD_CHAOS";

/// How large a run is, and from which seed its faults are drawn.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) topology: Topology,
    pub(crate) processes: usize,
    /// Tasks of each process.
    pub(crate) tasks: usize,
    /// How many locks there are; some are asked for much more often than others.
    pub(crate) names: usize,
    /// For how long there are faults.
    pub(crate) length: Duration,
    pub(crate) ttl: Duration,
    /// Whether the storage looks at fences.
    pub(crate) gated: bool,
    /// Whether everything is told, and the histories are checked; too much for a long run.
    pub(crate) told: bool,
}

impl Plan {
    /// The run of the gate, unless the environment says otherwise.
    pub(crate) fn from_env() -> Self {
        let text = env::var(VARIABLE).unwrap_or_default();
        let mut given: HashMap<&str, u64> = text
            .split_whitespace()
            .map(|pair| {
                let (key, value) = pair.split_once('=').expect("key=value");
                (key, value.parse().expect("a number"))
            })
            .collect();
        let mut take = |key, default| given.remove(key).unwrap_or(default);
        let plan = Self {
            seed: take("seed", 1),
            topology: Topology::One,
            processes: size(take("processes", 4)),
            tasks: size(take("tasks", 12)),
            names: size(take("names", 6)),
            length: Duration::from_secs(take("seconds", 10)),
            ttl: Duration::from_millis(take("ttl-ms", 1_000)),
            gated: true,
            told: take("told", 1) == 1,
        };
        assert!(given.is_empty(), "{VARIABLE} knows no {given:?}");
        plan
    }

    /// A short run on a storage that takes what comes.
    pub(crate) fn control(seed: u64) -> Self {
        let length = Duration::from_secs(5);
        let ttl = Duration::from_millis(600);
        let topology = Topology::One;
        let (gated, told) = (false, false);
        Self { seed, topology, processes: 3, tasks: 8, names: 2, length, ttl, gated, told }
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).expect("a size")
}
