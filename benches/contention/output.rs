use serde::{Deserialize, Serialize};

/// The line that a worker process prints; `benches/peers/orchestrate.py` says what each field is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Output {
    pub(crate) peer: String,
    /// The kind of tokio runtime.
    pub(crate) runtime: String,
    pub(crate) acquired: Vec<u64>,
    pub(crate) switches: u64,
    pub(crate) hold_us_mean: f64,
    pub(crate) cpu_us: f64,
    pub(crate) stuck: usize,
    pub(crate) waits_us: Vec<f64>,
    /// Left out where there were too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acquired_at_ns: Option<Vec<Vec<u64>>>,
}
