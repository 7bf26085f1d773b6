use serde::{Deserialize, Serialize};

/// What a worker process prints when its leases are held, and what comes after.
pub(crate) const HELD: &str = "held ";

/// The line that a worker process prints at its end begins with this.
pub(crate) const MEASURED: &str = "measured ";

/// What a worker process measured.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Output {
    /// How long it took to acquire all leases.
    pub(crate) acquired_in_s: f64,
    /// The processor time of that, in the client.
    pub(crate) acquired_cpu_s: f64,
    /// What the process' resident memory grew by until then, or until the end if that is more, for
    /// each lease.
    pub(crate) bytes_per_lease: f64,
    /// Leases that were lost until the end.
    pub(crate) lost: u64,
    /// Leases that were renewed in each second.
    pub(crate) renewed: Vec<u64>,
    /// Renewals that failed or were not answered.
    pub(crate) failed: u64,
    /// Commands that the server executed for clients.
    pub(crate) commands: u64,
    /// Processor time of the process.
    pub(crate) cpu_s: f64,
    /// How late half of the renewals were sent, at most.
    pub(crate) lag_p50_ms: f64,
    /// How late all but a hundredth were.
    pub(crate) lag_p99_ms: f64,
    /// How late the last of all was.
    pub(crate) lag_max_ms: f64,
}
