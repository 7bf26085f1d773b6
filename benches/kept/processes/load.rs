use std::time::Duration;

/// How many processes there are, and what they do with the lock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) processes: usize,
    /// The tasks of each process.
    pub(crate) tasks: usize,
    /// How long each holds the lock.
    pub(crate) hold: Duration,
    /// Whether two processes take turns, so that nobody ever waits for the other.
    pub(crate) alternate: bool,
    /// For how long turns are kept, where they are.
    pub(crate) keep_idle: Duration,
}
