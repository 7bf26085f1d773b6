use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{Fence, LockName, RuntimeId};

use super::cycles::{Certainty, Cycle, CycleStep, cycles};
use crate::listing::{ListError, ListedLock};

/// Who holds which locks, who waits for them, and where processes wait for each other in a circle.
///
/// Locks are read one after another, so a cycle may be over, or never have existed at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitGraph {
    /// The processes that hold a lock or wait for one, by their runtime ids.
    pub processes: Vec<Process>,
    /// The *certain* cycles: those of owners of this runtime.
    pub cycles: Vec<Cycle>,
    /// What could not be read; if there is anything, the graph is not complete.
    pub unread: Vec<ListError>,
}

impl WaitGraph {
    /// Makes the graph of some locks, as [`LockList`](crate::LockList) has them.
    ///
    /// It has no certain cycles: locks do not tell owners. Takes time in proportion to the locks and
    /// those who wait.
    pub fn of<'a>(locks: impl IntoIterator<Item = &'a ListedLock>) -> Self {
        let mut locks: Vec<_> = locks.into_iter().collect();
        locks.sort_by(|one, other| one.name.cmp(&other.name));
        let mut processes = BTreeMap::new();
        for lock in &locks {
            add_lock(&mut processes, lock);
        }
        let processes = processes.into_values().collect();
        Self { processes, cycles: Vec::new(), unread: Vec::new() }
    }

    /// Looks for *possible* cycles: processes that hold a lock for which another waits, in a circle.
    ///
    /// Such circles come and go in healthy services, such as one whose followers wait for a leader
    /// while they hold other locks. So ask for them when something is stuck. If processes wait for
    /// each other in several ways, only one cycle of them is told. Takes time in proportion to the
    /// locks and those who wait. The processes and what they hold have to be in order, as they come.
    pub fn possible_cycles(&self) -> Vec<Cycle> {
        let processes = &self.processes;
        let number = |runtime: RuntimeId| {
            processes.binary_search_by(|process| process.runtime.cmp(&runtime)).ok()
        };
        let (mut locks, mut edges) = (Vec::new(), vec![Vec::new(); processes.len()]);
        for (process, edges) in processes.iter().zip(&mut edges) {
            for Wait { lock, holder, .. } in &process.waits {
                let holder = number(*holder).filter(|holder| processes[*holder].uses(lock));
                edges.extend(holder.map(|holder| (holder, locks.len())));
                locks.push(lock);
            }
        }
        let step = |process: usize, holds: usize, waits_for: usize| CycleStep {
            runtime: processes[process].runtime,
            label: processes[process].label.clone(),
            holds: locks[holds].clone(),
            waits_for: locks[waits_for].clone(),
        };
        cycles(&edges).iter().map(|ring| Cycle::of(Certainty::Possible, ring, step)).collect()
    }
}

fn add_lock(processes: &mut BTreeMap<RuntimeId, Process>, lock: &ListedLock) {
    let ListedLock { name, lease } = lock;
    let holder = lease.id.runtime();
    let hold = Hold {
        lock: name.clone(),
        fence: lease.fence,
        held_for: lease.held_for,
        remaining: lease.remaining,
        kept: lease.kept,
        idle: lease.idle,
        waiters: lease.waiters.len(),
    };
    entry_of(processes, holder, &lease.label).holds.push(hold);
    for (position, waiter) in lease.waiters.iter().enumerate() {
        let wait = Wait {
            lock: name.clone(),
            position,
            waiting_for: waiter.waiting_for,
            silent_for: waiter.silent_for,
            holder,
        };
        entry_of(processes, waiter.id.runtime(), &waiter.label).waits.push(wait);
    }
}

fn entry_of<'a>(
    processes: &'a mut BTreeMap<RuntimeId, Process>,
    runtime: RuntimeId,
    label: &str,
) -> &'a mut Process {
    processes.entry(runtime).or_insert_with(|| {
        let (label, holds, waits) = (label.to_owned(), Vec::new(), Vec::new());
        Process { runtime, label, holds, waits }
    })
}

/// A process: one runtime, with what it holds and what it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Process {
    /// The id of the runtime.
    pub runtime: RuntimeId,
    /// Its label.
    pub label: String,
    /// The locks that it holds, by their names.
    pub holds: Vec<Hold>,
    /// The locks for which it waits, by their names.
    pub waits: Vec<Wait>,
}

impl Process {
    /// Whether it holds a lock until a task gives it back: one that is kept closed, or idle, opens
    /// by itself.
    fn uses(&self, lock: &LockName) -> bool {
        let at = self.holds.binary_search_by(|hold| hold.lock.cmp(lock));
        at.is_ok_and(|at| !self.holds[at].kept && !self.holds[at].idle)
    }
}

/// A lock that a process holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hold {
    /// The lock.
    pub lock: LockName,
    /// The first fence of the process's turn.
    pub fence: Fence,
    /// How long ago the turn began.
    pub held_for: Duration,
    /// How long the lease has left without renewal.
    pub remaining: Duration,
    /// Whether it was given back, and the lock is only kept closed: it opens by itself.
    pub kept: bool,
    /// Whether no task uses it. Known only for this runtime; `false` for all others.
    pub idle: bool,
    /// How many processes wait for it, at most 128.
    pub waiters: usize,
}

/// A lock for which a process waits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wait {
    /// The lock.
    pub lock: LockName,
    /// How many processes stand before this one.
    pub position: usize,
    /// How long ago it queued.
    pub waiting_for: Duration,
    /// How long ago it was heard.
    pub silent_for: Duration,
    /// The runtime that holds the lock.
    pub holder: RuntimeId,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::{
        AcquisitionId, Fence, LockName, Mode,
        store::{LeaseRecord, WaiterRecord},
    };
    use uuid::Uuid;

    use super::*;

    fn id(process: u128) -> AcquisitionId {
        AcquisitionId::new(RuntimeId::new(Uuid::from_u128(process)), 1)
    }

    fn lock(name: &str, holder: u128, waiters: &[u128]) -> ListedLock {
        let waiter = |process: &u128| WaiterRecord {
            id: id(*process),
            mode: Mode::Write,
            label: process.to_string(),
            waiting_for: Duration::from_secs(2),
            silent_for: Duration::from_secs(1),
        };
        let lease = LeaseRecord {
            id: id(holder),
            mode: Mode::Write,
            readers: Vec::new(),
            fence: Fence::try_from(7_u64).unwrap(),
            holds: 1,
            remaining: Duration::from_secs(30),
            label: holder.to_string(),
            held_for: Duration::from_secs(3),
            kept: false,
            keeps: false,
            idle: false,
            waiters: waiters.iter().map(waiter).collect(),
        };
        ListedLock { name: LockName::new(name).unwrap(), lease }
    }

    fn told(locks: &[ListedLock]) -> Vec<String> {
        WaitGraph::of(locks).possible_cycles().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_process_has_what_it_holds_and_waits_for() {
        let graph = WaitGraph::of(&[lock("b", 1, &[3, 2]), lock("a", 2, &[])]);
        let [one, two, three] = &graph.processes[..] else { panic!("{graph:?}") };
        let held = |process: &Process| {
            let names = process.holds.iter().map(|hold| hold.lock.to_string());
            names.collect::<String>()
        };
        assert_eq!([held(one), held(two), held(three)], ["b", "a", ""].map(String::from));
        assert_eq!((one.holds[0].waiters, one.waits.len()), (2, 0));
        let [wait] = &two.waits[..] else { panic!("{two:?}") };
        assert_eq!((wait.position, wait.holder, three.waits[0].position), (1, one.runtime, 0));
        assert!(graph.cycles.is_empty() && graph.unread.is_empty());
    }

    #[test]
    fn a_cycle_is_possible_and_told_with_its_locks() {
        let both = [lock("x", 1, &[2]), lock("y", 2, &[3, 1])];
        assert_eq!(
            told(&both),
            [r#"1 holds "x" and waits for "y", 2 holds "y" and waits for "x""#]
        );
        let graph = WaitGraph::of(&both);
        assert!(graph.cycles.is_empty(), "it is told only on request");
        let cycles = graph.possible_cycles();
        assert_eq!(cycles[0].certainty, Certainty::Possible);
        let locks: Vec<_> = cycles[0].locks().map(LockName::as_str).collect();
        assert_eq!(locks, ["x", "y"]);
    }

    #[test]
    fn a_lock_that_opens_by_itself_closes_no_circle() {
        let mut kept = lock("x", 1, &[2]);
        kept.lease.kept = true;
        let mut idle = lock("x", 1, &[2]);
        idle.lease.idle = true;
        for opening in [kept, idle] {
            assert!(told(&[opening, lock("y", 2, &[1])]).is_empty());
        }
    }
}
