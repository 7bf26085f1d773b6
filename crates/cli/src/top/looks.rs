use std::time::Duration;

use leasehold::{
    ListedLock, LockRuntime, NamePattern,
    error::ListError,
    graph::WaitGraph,
    time::{Clock, Instant, SystemClock},
};
use tokio::sync::{mpsc, watch};

use crate::durations::EVERY;

/// The most steps in a second; each is a short command.
// ADR 0022
pub(super) const STEPS_PER_SECOND: u32 = 200;

/// All locks, each seen at one moment.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) locks: Vec<ListedLock>,
    pub(super) graph: WaitGraph,
    pub(super) unread: Vec<ListError>,
    /// When it ended.
    pub(super) at: Instant,
    /// How many steps it had, and how long they took.
    pub(super) steps: u64,
    pub(super) took: Duration,
}

/// Looks again and again, except while it is paused, until the view ends.
pub(super) async fn look_on(
    locks: LockRuntime,
    pattern: NamePattern,
    mut paused: watch::Receiver<bool>,
    sender: mpsc::Sender<Look>,
) {
    loop {
        if paused.wait_for(|paused| !paused).await.is_err() {
            return;
        }
        let began = SystemClock.now();
        let Some(look) = look(&locks, &pattern, began).await else { return };
        if sender.send(look).await.is_err() {
            return;
        }
        SystemClock.sleep_until(began + EVERY).await;
    }
}

async fn look(locks: &LockRuntime, pattern: &NamePattern, began: Instant) -> Option<Look> {
    let pause = Duration::from_secs(1) / STEPS_PER_SECOND;
    let mut list = locks.list(pattern.as_str()).ok()?;
    let (mut found, mut unread, mut steps) = (Vec::new(), Vec::new(), 0);
    let mut due = began;
    while let Some(item) = list.next().await {
        match item {
            Ok(lock) => found.push(lock),
            Err(error) => unread.push(error),
        }
        let taken = list.steps();
        if taken > steps {
            due = due + pause * u32::try_from(taken - steps).unwrap_or(1);
            steps = taken;
            SystemClock.sleep_until(due).await;
        }
    }
    let graph = WaitGraph::of(&found);
    let at = SystemClock.now();
    Some(Look {
        locks: found,
        graph,
        unread,
        at,
        steps: list.steps(),
        took: at.saturating_since(began),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use leasehold::{
        LockName,
        store::{LeaseRecord, WaiterRecord},
    };

    use super::*;

    pub(in crate::top) fn at(seconds: u64) -> Instant {
        Instant::at(Duration::from_secs(seconds))
    }

    /// A lock that is held, and waited for, for some seconds.
    pub(in crate::top) fn lock(name: &str, held: u64, waits: &[u64]) -> ListedLock {
        const ID: &str = "9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d:1";
        let waiter = |seconds: &u64| WaiterRecord {
            id: ID.parse().unwrap(),
            label: "waiter".into(),
            waiting_for: Duration::from_secs(*seconds),
            silent_for: Duration::ZERO,
        };
        let lease = LeaseRecord {
            id: ID.parse().unwrap(),
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

    pub(in crate::top) fn look(locks: Vec<ListedLock>, at: Instant) -> Look {
        let graph = WaitGraph::of(&locks);
        Look { locks, graph, unread: Vec::new(), at, steps: 1, took: Duration::from_secs(1) }
    }
}
