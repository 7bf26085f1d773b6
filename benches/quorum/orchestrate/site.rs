use std::{collections::BTreeMap, fmt};

use leasehold_testkit::QuorumGroup;

use crate::Failure;

/// How many servers there are, and how many of them are down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) nodes: usize,
    pub(super) down: usize,
}

impl Site {
    /// All of them, in the order of the tables.
    pub(super) const ALL: [Self; 4] = [
        Self { nodes: 3, down: 0 },
        Self { nodes: 3, down: 1 },
        Self { nodes: 5, down: 0 },
        Self { nodes: 5, down: 2 },
    ];

    pub(super) fn is_whole(self) -> bool {
        self.down == 0
    }
}

/// As rows are named.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.down {
            0 => write!(f, "{}-up", self.nodes),
            down => write!(f, "{}-{down}-down", self.nodes),
        }
    }
}

/// The servers of all sites; those that differ only in what is down are the same.
#[derive(Debug, Default)]
pub(super) struct Sites(BTreeMap<usize, QuorumGroup>);

impl Sites {
    /// Measures something at a site; the first servers are down meanwhile, and come back with what
    /// they knew.
    pub(super) fn with<T>(
        &mut self,
        site: Site,
        measure: impl FnOnce(&QuorumGroup) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let group = self.0.entry(site.nodes).or_insert_with(|| QuorumGroup::start(site.nodes));
        // What came back is another run.
        group.let_vote();
        for number in 0..site.down {
            group.save(number);
            group.kill(number);
        }
        let measured = measure(group);
        for number in 0..site.down {
            group.revive(number);
        }
        measured
    }
}
