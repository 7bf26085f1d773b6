use std::io;

use leasehold_core::{NameError, SettingError, StoreError};
use leasehold_doctor::{Diagnosis, Finding};
use leasehold_redis::AddressError;
use leasehold_reentrant_lock::OptionsError;

/// Why a lock runtime was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address is not understood.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The namespace cannot prefix keys.
    #[error(transparent)]
    Namespace(#[from] NameError),
    /// A setting is out of range.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A default of acquires is out of range.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The server is out of reach, refuses the login, denies a command, is too old, or is a node
    /// of a Cluster.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// An embedded runtime cannot wait for replicas.
    #[error(
        "the memory of this process has no replicas; leave replication() out, or connect to a server"
    )]
    NoReplicas,
    /// There is no tokio runtime to run on, and `own_thread()` was not set.
    #[error("there is no tokio runtime here; call this inside of one, or ask for own_thread()")]
    NoTokio,
    /// The tokio runtime was built without timers, so nothing could be renewed on it.
    #[error(
        "this tokio runtime has no timers; build it with enable_all(), or ask for own_thread()"
    )]
    NoTimers,
    /// The tokio runtime ended while the connection was being made.
    #[error(
        "the tokio runtime ended while a connection was being made; connect on one that lives as \
         long as the locks, or ask for own_thread()"
    )]
    TokioEnded,
    /// The servers endanger a promise, and [`Strictness::Refuse`](crate::Strictness::Refuse) was
    /// asked for. The findings are in the diagnosis.
    #[error("the server is refused: {}", findings(.0))]
    Refused(Box<Diagnosis>),
    /// [`Strictness::Refuse`](crate::Strictness::Refuse) was asked for, and nothing can be examined
    /// without a connection.
    #[error(
        "a lazy connection sends the server nothing, and so cannot refuse it; use connect(), or \
         take Strictness::Warn and call diagnose()"
    )]
    NotExamined,
    /// The system refused a new thread for the lock runtime.
    #[error("the system refused a thread for the lock runtime: {}; {}", .0, remedy(.0))]
    Thread(io::Error),
}

/// What to do about a thread that the system refused: it also needs file descriptors.
fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(24) => "raise `ulimit -n`, or find what leaks files and connections",
        _ => "raise its limits",
    }
}

/// What led to a refusal, in one line.
fn findings(diagnosis: &Diagnosis) -> String {
    let findings: Vec<_> = diagnosis.warnings().map(Finding::to_string).collect();
    format!("{}; or take Strictness::Warn", findings.join("; "))
}
