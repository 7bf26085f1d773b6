use std::{fmt, io};

use tokio::runtime::{Builder, Runtime};

/// A kind of tokio runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// What services use.
    Multi,
    /// All on one thread.
    Current,
}

impl Kind {
    /// Builds such a runtime.
    pub(crate) fn build(self) -> io::Result<Runtime> {
        match self {
            Self::Multi => Builder::new_multi_thread().enable_all().build(),
            Self::Current => Builder::new_current_thread().enable_all().build(),
        }
    }
}

/// As rows are named.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Multi => "multi-thread",
            Self::Current => "current-thread",
        })
    }
}
