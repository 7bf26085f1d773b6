use leasehold::fencing::GateError;

/// Why the storage did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error("the storage on Redis: {0}")]
    Redis(#[from] redis::RedisError),
    #[error("the storage answered {0}, which is not understood; another program uses its keys")]
    Answer(String),
}

impl StorageError {
    /// Whether another holder has taken over.
    pub(crate) fn is_stale(&self) -> bool {
        matches!(self, Self::Gate(GateError::Stale(_)))
    }

    /// Whether a repeat may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Gate(GateError::Store(error)) => error.kind().is_transient(),
            Self::Redis(error) => error.is_io_error(),
            Self::Gate(_) | Self::Answer(_) => false,
        }
    }
}
