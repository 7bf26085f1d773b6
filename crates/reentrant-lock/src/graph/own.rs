use std::collections::{BTreeMap, VecDeque};

use leasehold_core::{LockName, Mutex, RuntimeId, RuntimeLabel};

use super::{
    cycles::{Ring, cycles, ring},
    wait_graph::{Certainty, Cycle, CycleStep},
};
use crate::owner::{Owner, WeakOwner};

/// Which owners of a runtime hold which locks; without those of calls that have no owner.
#[derive(Debug, Default)]
pub(crate) struct OwnHolds(Mutex<BTreeMap<LockName, WeakOwner>>);

impl OwnHolds {
    pub(crate) fn gained(&self, name: &LockName, owner: &Owner) {
        self.0.lock().insert(name.clone(), owner.downgrade());
    }

    pub(crate) fn lost(&self, name: &LockName, owner: &Owner) {
        let mut holds = self.0.lock();
        if holds.get(name).is_some_and(|holder| holder.is(owner)) {
            holds.remove(name);
        }
    }

    /// The owner that holds a lock.
    fn holder(&self, name: &LockName) -> Option<Owner> {
        let holder = self.0.lock().get(name).and_then(WeakOwner::upgrade)?;
        let held = holder.held(name)?;
        held.lease.is_held().then_some(holder)
    }

    /// The cycles among the owners of a runtime.
    pub(crate) fn cycles(&self, runtime: RuntimeId, label: &RuntimeLabel) -> Vec<Cycle> {
        let holders = self.0.lock().values().filter_map(WeakOwner::upgrade).collect();
        let graph = OwnerGraph::from(self, holders);
        cycles(&graph.edges).iter().map(|ring| graph.cycle(runtime, label, ring)).collect()
    }

    /// The cycle that a call is certainly a part of, as far as the runtime can see it.
    pub(crate) fn cycle_of(
        &self,
        wait: &OwnerWait,
        runtime: RuntimeId,
        label: &RuntimeLabel,
    ) -> Option<Cycle> {
        let graph = OwnerGraph::from(self, vec![wait.owner.clone()]);
        let cycle = graph.cycle(runtime, label, &ring(&graph.edges, 0, |_| true)?);
        Some(cycle).filter(|cycle| cycle.certainty == Certainty::Certain)
    }
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
    fn from(holds: &OwnHolds, owners: Vec<Owner>) -> Self {
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
                if let Some(holder) = holds.holder(&name) {
                    to.push((number(holder, &mut open), locks.len()));
                    locks.push(name);
                }
            }
            edges.push(to);
        }
        Self { waits, locks, edges }
    }

    fn cycle(&self, runtime: RuntimeId, label: &RuntimeLabel, ring: &Ring) -> Cycle {
        // One that waits for several may go on with another.
        let is_certain = ring.iter().all(|(owner, _)| self.waits[*owner] == 1);
        let certainty = if is_certain { Certainty::Certain } else { Certainty::Possible };
        Cycle::of(certainty, ring, |_, holds, waits_for| CycleStep {
            runtime,
            label: label.to_string(),
            holds: self.locks[holds].clone(),
            waits_for: self.locks[waits_for].clone(),
        })
    }
}
