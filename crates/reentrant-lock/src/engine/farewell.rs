use std::{collections::BTreeSet, sync::mpsc::channel, time::Duration};

use leasehold_core::LockName;
use leasehold_watchdog::Key;

use super::core::Engine;

/// For how long the end of a runtime with a thread of its own waits for its releases.
const FLUSH: Duration = Duration::from_millis(50);
/// How many locks one line names.
const NAMED: usize = 16;

impl Engine {
    /// Nobody uses the runtime any more, and its process may be about to end: waits for the releases
    /// that a thread of its own is sending, for 50 ms at most, and warns of the others.
    ///
    /// It blocks its thread. Without a thread of its own it does nothing: the caller may be
    /// the one that would have to send.
    pub fn farewell(&self) {
        let Some(engine) = self.me.upgrade() else { return };
        // After a shutdown, its report has named them.
        let is_over = self.is_forked() || self.refuses();
        if is_over || !self.executor.is_own_thread() || self.pending.closed().is_empty() {
            return;
        }
        let (done, flushed) = channel::<()>();
        self.spawn(async move {
            let until = engine.clock.now() + FLUSH;
            drop(engine.pending.drain(&*engine.clock, until, until).await);
            drop(done);
        });
        // Ends when the sender is dropped. The thread may be blocked, and the clock a test's.
        let _ended = flushed.recv_timeout(FLUSH);
        warn_of(&self.pending.closed());
    }

    /// A release was dropped before its end.
    pub(super) fn on_left(&self, key: Key, name: &LockName) {
        let left = self.pending.left(key, name);
        // What is in the memory of this process ends with it.
        if !self.refuses() && !self.store.ends_with_process() {
            warn_of(&left);
        }
    }
}

/// One line for all of them.
fn warn_of(locks: &BTreeSet<LockName>) {
    if locks.is_empty() {
        return;
    }
    let names: Vec<&str> = locks.iter().take(NAMED).map(LockName::as_str).collect();
    let more = locks.len().saturating_sub(NAMED);
    tracing::warn!(
        locks = ?names, more,
        "releases are not confirmed, and nobody waits for them any more: each lock may stay closed until \
         its ttl is over; call drain() before main returns"
    );
}
