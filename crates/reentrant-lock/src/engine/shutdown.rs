use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use leasehold_core::LockName;
use tokio::sync::watch;

/// What a shutdown or a drain could do in its time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "leases that were not released stay closed until their ttl ends"]
pub struct ShutdownReport {
    /// How many leases were held when the shutdown began, or when the time of the drain was over;
    /// their holders saw them as lost.
    pub held: usize,
    /// The locks of leases that ended, and whose release the server has not confirmed in time, in
    /// order; free when their ttl ends. Acquires that failed or were given up are not listed: a
    /// place or grant that one of them may have left expires by itself.
    pub unreleased: Vec<LockName>,
}

impl ShutdownReport {
    /// A fork holds nothing.
    pub(super) fn of_fork() -> Self {
        Self { held: 0, unreleased: Vec::new() }
    }
}

/// How far the end of a runtime has come.
#[derive(Debug, Default)]
pub(crate) struct ShutdownState {
    refuses: AtomicBool,
    drains: AtomicBool,
    /// Of a drain, once it is over.
    pub(super) report: OnceLock<watch::Receiver<Option<ShutdownReport>>>,
}

impl ShutdownState {
    /// From now on no call gets a new lease.
    pub(super) fn refuse(&self) {
        self.refuses.store(true, Ordering::SeqCst);
    }

    /// From now on calls are refused as those of a runtime that drains.
    pub(super) fn begin_drain(&self) {
        self.drains.store(true, Ordering::SeqCst);
    }

    pub(crate) fn refuses(&self) -> bool {
        self.refuses.load(Ordering::SeqCst)
    }

    /// Whether a drain has begun, and its report is not there yet.
    pub(crate) fn is_draining(&self) -> bool {
        let is_over = || self.report.get().is_some_and(|report| report.borrow().is_some());
        self.drains.load(Ordering::SeqCst) && !is_over()
    }
}
