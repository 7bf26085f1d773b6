use std::time::Duration;

use leasehold_core::{Fence, LockName, RuntimeId};

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
    /// Whether no task of this very runtime uses it. Of other runtimes that is not known, and this
    /// is false.
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
