use serde::{Deserialize, Serialize};

/// The line that a worker process prints when it can begin.
pub(crate) const READY: &str = "ready";

/// The line that a worker process prints at its end begins with this.
pub(crate) const MEASURED: &str = "measured ";

/// What the tasks of a process did in the window.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Output {
    /// The fences of all leases.
    pub(crate) fences: Vec<u64>,
    /// How long the acquires took.
    pub(crate) waits_ns: Vec<u64>,
    /// Processor time of the process.
    pub(crate) cpu_us: f64,
    /// Tasks that waited in vain when all others had stopped.
    pub(crate) stuck: usize,
}
