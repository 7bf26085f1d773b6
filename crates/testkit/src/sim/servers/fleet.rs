use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use leasehold_core::{
    Clock, Instant, LockName, StoreError, StoreErrorKind,
    store::{Command, Push},
};
use leasehold_redis::{seam::View, slot_of_lock};

use super::{
    layout::{Layout, Stranger},
    node::{Node, State},
    place::place_of,
};
use crate::{
    ManualClock, Mistake,
    faulty::CommandFacts,
    sim::{network::Outcome, server::Server},
};

/// More changes than any Cluster of a world sees.
const EPOCH_OF_ANOTHER: u64 = 1_000_000;

/// All servers of a world, and what its Sentinels say.
pub(in crate::sim) struct Fleet {
    pub(in crate::sim) layout: Layout,
    pub(in crate::sim) nodes: Vec<Node>,
    /// The master of the group that was promoted last.
    master: usize,
    /// Whom each Sentinel names.
    named_by: [usize; Layout::SENTINELS],
    /// Where the keys of a slot of the Cluster are.
    pub(super) homes: BTreeMap<u16, usize>,
    pub(super) names: BTreeSet<LockName>,
    /// A replica that was cut off together with the master, and still follows it.
    pub(super) beside: Option<usize>,
    /// Until when no write arrives at a replica.
    pub(super) stalled_until: Instant,
}

/// What a failover has changed.
#[derive(Debug)]
pub(in crate::sim) struct Promotion {
    pub(in crate::sim) old: usize,
    pub(in crate::sim) new: usize,
    /// The names, and whether the new master lacks a write about each.
    pub(in crate::sim) names: Vec<(LockName, bool)>,
}

impl Fleet {
    pub(in crate::sim) fn new(
        layout: Layout,
        clock: &ManualClock,
        mistake: Option<Mistake>,
    ) -> Self {
        let is_master = |node| matches!(layout, Layout::Cluster { .. }) || node == 0;
        let node = |number| {
            let server = Server::new(clock, layout.behind(number), mistake);
            Node::new(server, is_master(number))
        };
        let mut nodes: Vec<Node> = (0..layout.nodes()).map(node).collect();
        let mut homes = BTreeMap::new();
        if let Layout::Cluster { masters, stranger, names } = &layout {
            for (slot, owner) in names.iter().map(slot_of_lock).zip((0..*masters).cycle()) {
                let owner = *homes.entry(slot).or_insert(owner);
                for node in &mut nodes[..*masters] {
                    node.chart.assign(slot, owner);
                }
                if *stranger == Some(Stranger::OfAnother) {
                    nodes[*masters].chart.settle(slot, *masters, EPOCH_OF_ANOTHER);
                }
            }
        }
        if let Layout::Group { .. } = layout {
            for replica in 1..nodes.len() {
                nodes[0].stream.follow(replica, clock.now());
            }
        }
        Self {
            layout,
            nodes,
            master: 0,
            named_by: [0; Layout::SENTINELS],
            homes,
            names: BTreeSet::new(),
            beside: None,
            stalled_until: Instant::default(),
        }
    }

    pub(in crate::sim) fn is_cluster(&self) -> bool {
        matches!(self.layout, Layout::Cluster { .. })
    }

    /// The server that has the last word about a name.
    pub(in crate::sim) fn home(&self, name: &LockName) -> usize {
        match self.layout {
            Layout::Cluster { .. } => self.homes.get(&slot_of_lock(name)).copied().unwrap_or(0),
            _ => self.master,
        }
    }

    /// The master of a group that was promoted last.
    pub(in crate::sim) fn master(&self) -> usize {
        self.master
    }

    /// Runs a command on a server, which writes what follows from it; the pushes that it makes, and
    /// the number of the write.
    pub(in crate::sim) fn execute(
        &mut self,
        node: usize,
        command: &Command,
    ) -> (Outcome, Vec<(usize, Push)>, u64) {
        let names: Vec<LockName> = command.names().into_iter().cloned().collect();
        let executor = &mut self.nodes[node];
        let (outcome, pushes) = executor.server.execute(&command.without_acks());
        let number = executor.stream.write(&names);
        self.names.extend(names);
        (outcome, pushes, number)
    }

    /// Whether a server runs a command that has come to it.
    pub(in crate::sim) fn admits(
        &self,
        node: usize,
        command: &Command,
        is_asking: bool,
    ) -> Result<(), StoreError> {
        let Node { is_master, chart, server, .. } = &self.nodes[node];
        if !is_master {
            return Err(refused("READONLY You can't write against a read only replica.".into()));
        }
        if !self.is_cluster() {
            return Ok(());
        }
        let names = command.names();
        // A scan is about what a node has.
        let Some(name) = names.first() else { return Ok(()) };
        let has_keys = !server.memory().copy(name).is_empty();
        chart.admits(node, slot_of_lock(name), is_asking, has_keys).map_err(refused)
    }

    /// Whom a Sentinel names.
    pub(in crate::sim) fn named_by(&self, sentinel: usize) -> usize {
        match self.layout {
            Layout::Group { has_liar: true, .. } if sentinel == 0 => 0,
            _ => self.named_by[sentinel],
        }
    }

    /// A Sentinel names another master from now on.
    pub(in crate::sim) fn name(&mut self, sentinel: usize, master: usize) {
        self.named_by[sentinel] = master;
    }

    /// What a node of a Cluster tells of the slots.
    pub(in crate::sim) fn view(&self, node: usize) -> View {
        let view = self.nodes[node].chart.view();
        let Layout::Cluster { masters, stranger, .. } = &self.layout else { return view };
        // Each master owns slots of which no lock is.
        let of_its_cluster = match stranger {
            _ if node < *masters => 0..*masters,
            Some(Stranger::OfAnother) => node..node + 1,
            _ => 0..0,
        };
        let named = |node: usize| (format!("id-{node}"), place_of(node));
        View { nodes: of_its_cluster.map(named).collect(), ..view }
    }

    /// The replica that is furthest.
    pub(in crate::sim) fn furthest(&self) -> Option<usize> {
        let stream = &self.nodes[self.master].stream;
        // Of equals the first one.
        self.replicas().into_iter().rev().max_by_key(|replica| stream.reached(*replica))
    }

    /// The replicas that could become the master.
    pub(in crate::sim) fn replicas(&self) -> Vec<usize> {
        let stream = &self.nodes[self.master].stream;
        let can = |replica: &usize| {
            self.nodes[*replica].state == State::Awake && self.beside != Some(*replica)
        };
        stream.followers().into_iter().map(|(replica, _)| replica).filter(can).collect()
    }

    /// A replica is the master from now on.
    pub(in crate::sim) fn promote(&mut self, new: usize) -> Promotion {
        let old = std::mem::replace(&mut self.master, new);
        let stream = &self.nodes[old].stream;
        let lacks = |name: &LockName| (name.clone(), stream.lacks(new, name));
        let names = self.names.iter().map(lacks).collect();
        self.nodes[old].stream.leave(new);
        self.nodes[new].is_master = true;
        Promotion { old, new, names }
    }

    /// A server is a replica of the present master from now on, with a copy of all that this has.
    pub(in crate::sim) fn follow(&mut self, replica: usize, now: Instant) {
        let master = self.master;
        if replica == master {
            return;
        }
        for node in &mut self.nodes {
            node.stream.leave(replica);
        }
        let names: Vec<LockName> = self.names.iter().cloned().collect();
        for name in &names {
            let copied = self.nodes[master].server.memory().copy(name);
            self.nodes[replica].server.memory().paste(name, &copied);
        }
        (self.nodes[replica].is_master, self.nodes[replica].state) = (false, State::Awake);
        self.nodes[master].stream.follow(replica, now);
        self.beside = self.beside.filter(|beside| *beside != replica);
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// What a server says that has not run a command.
fn refused(words: String) -> StoreError {
    StoreError::new(StoreErrorKind::Definite, words, "try again").as_answer()
}
