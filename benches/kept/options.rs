use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use crate::subjects::Subject;

/// What a worker process is told on its command line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Options {
    pub(crate) subject: Subject,
    /// For how long turns are kept, if the subject keeps them.
    pub(crate) keep_idle: Duration,
    /// The address of the server.
    pub(crate) redis: String,
    /// The name of the lock.
    pub(crate) name: String,
    /// How many tasks want it.
    pub(crate) tasks: usize,
    /// How long each holds it.
    pub(crate) hold: Duration,
    /// Where the two processes meet that take turns, if they do.
    pub(crate) meeting: Option<PathBuf>,
    /// Whether this is the first of the processes.
    pub(crate) first: bool,
    /// Where it is written when the window starts, once all processes are ready.
    pub(crate) start_file: PathBuf,
    /// When the window starts, since 1970; what the file says.
    pub(crate) start: Duration,
    /// How long the window is.
    pub(crate) measured: Duration,
}
