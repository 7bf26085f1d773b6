use std::time::Duration;

use leasehold::{
    ListedLock, LockRuntime, NamePattern,
    error::ListError,
    graph::WaitGraph,
    time::{Clock, Instant, SystemClock},
};
use tokio::sync::{mpsc, watch};

use crate::durations::EVERY;

/// The most steps in a second; each is a short command, on a Cluster up to 16 of them.
// ADR 0022
pub(super) const STEPS_PER_SECOND: u32 = 200;

/// All locks, each seen at a moment of its own.
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
pub(super) async fn keep_looking(
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

/// Looks once; `None` if the pattern is refused.
async fn look(runtime: &LockRuntime, pattern: &NamePattern, began: Instant) -> Option<Look> {
    let pause = Duration::from_secs(1) / STEPS_PER_SECOND;
    let mut list = runtime.list(pattern.as_str()).ok()?;
    let (mut locks, mut unread, mut steps) = (Vec::new(), Vec::new(), 0);
    let mut due = began;
    while let Some(item) = list.next().await {
        match item {
            Ok(lock) => locks.push(lock),
            Err(error) => unread.push(error),
        }
        let taken = list.steps();
        if taken > steps {
            due = due + pause * u32::try_from(taken - steps).unwrap_or(1);
            steps = taken;
            SystemClock.sleep_until(due).await;
        }
    }
    let (graph, at, steps) = (WaitGraph::of(&locks), SystemClock.now(), list.steps());
    let took = at.saturating_since(began);
    Some(Look { locks, graph, unread, at, steps, took })
}
