use std::collections::{BTreeMap, VecDeque};

use leasehold_core::LockName;

use super::cycles::{Certainty, Cycle, CycleStep, Ring, cycles, ring};
use crate::{engine::Engine, owner::Owner};

/// The cycles among the owners of a runtime that go on until a wait is over.
pub(crate) fn certain_cycles(engine: &Engine) -> Vec<Cycle> {
    let graph = OwnerGraph::from(engine, engine.owners());
    cycles(&graph.edges).iter().filter_map(|ring| graph.certain(engine, ring)).collect()
}

/// The cycle that a call is certainly a part of, as far as the runtime can see it.
pub(crate) fn certain_cycle_of(engine: &Engine, wait: &OwnerWait) -> Option<Cycle> {
    let graph = OwnerGraph::from(engine, vec![wait.owner.clone()]);
    graph.certain(engine, &ring(&graph.edges, 0, |_| true)?)
}

/// A call that waits with an owner, until it is dropped.
#[derive(Debug)]
pub(crate) struct OwnerWait {
    owner: Owner,
    name: LockName,
}

impl OwnerWait {
    pub(crate) fn new(owner: &Owner, name: &LockName) -> Self {
        owner.waits_for(name);
        Self { owner: owner.clone(), name: name.clone() }
    }
}

impl Drop for OwnerWait {
    fn drop(&mut self) {
        self.owner.waits_no_more(&self.name);
    }
}

/// Owners of a runtime that wait for each other.
struct OwnerGraph {
    /// How many waits each of them has.
    waits: Vec<usize>,
    locks: Vec<LockName>,
    edges: Vec<Vec<(usize, usize)>>,
}

impl OwnerGraph {
    /// Some owners, and all for whom they wait.
    fn from(engine: &Engine, owners: Vec<Owner>) -> Self {
        let mut numbers = BTreeMap::new();
        let mut open = VecDeque::new();
        let (mut waits, mut locks, mut edges) = (Vec::new(), Vec::new(), Vec::new());
        let mut number = |owner: Owner, open: &mut VecDeque<Owner>| {
            let next = numbers.len();
            *numbers.entry(owner.key()).or_insert_with(|| {
                open.push_back(owner);
                next
            })
        };
        for owner in owners {
            number(owner, &mut open);
        }
        while let Some(owner) = open.pop_front() {
            let awaited = owner.awaited();
            waits.push(awaited.len());
            let mut to = Vec::new();
            for name in awaited {
                if let Some(holder) = engine.owner_of(&name) {
                    to.push((number(holder, &mut open), locks.len()));
                    locks.push(name);
                }
            }
            edges.push(to);
        }
        Self { waits, locks, edges }
    }

    /// The cycle of a ring, if none of it goes on by itself.
    fn certain(&self, engine: &Engine, ring: &Ring) -> Option<Cycle> {
        // One that waits for several may go on with another.
        let is_certain = ring.iter().all(|(owner, _)| self.waits[*owner] == 1);
        is_certain.then(|| {
            Cycle::of(Certainty::Certain, ring, |_, holds, waits_for| CycleStep {
                runtime: engine.runtime_id(),
                label: engine.label.to_string(),
                holds: self.locks[holds].clone(),
                waits_for: self.locks[waits_for].clone(),
            })
        })
    }
}
