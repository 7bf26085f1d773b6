//! Locks and looks for the tests of the view.

use std::time::Duration;

use leasehold::{
    ListedLock, LockName,
    graph::WaitGraph,
    store::{LeaseRecord, Mode, WaiterRecord},
    time::Instant,
};

use super::looks::Look;

pub(super) fn at(seconds: u64) -> Instant {
    Instant::at(Duration::from_secs(seconds))
}

/// A lock that is held, and waited for, for some seconds.
pub(super) fn lock(name: &str, held: u64, waits: &[u64]) -> ListedLock {
    const ID: &str = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:1";
    let waiter = |seconds: &u64| WaiterRecord {
        id: ID.parse().unwrap(),
        mode: Mode::Write,
        label: "waiter".into(),
        waiting_for: Duration::from_secs(*seconds),
        silent_for: Duration::ZERO,
    };
    let lease = LeaseRecord {
        id: ID.parse().unwrap(),
        mode: Mode::Write,
        readers: Vec::new(),
        fence: 7_u64.try_into().unwrap(),
        holds: 1,
        remaining: Duration::from_secs(30),
        label: "holder".into(),
        held_for: Duration::from_secs(held),
        kept: false,
        keeps: false,
        idle: false,
        waiters: waits.iter().map(waiter).collect(),
    };
    ListedLock::new(LockName::new(name).unwrap(), lease)
}

pub(super) fn look(locks: Vec<ListedLock>, at: Instant) -> Look {
    let graph = WaitGraph::of(&locks);
    Look { locks, graph, unread: Vec::new(), at, steps: 1, took: Duration::from_secs(1) }
}
