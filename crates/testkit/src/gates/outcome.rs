use leasehold_core::Stamp;

/// How a write through a gate ended, for the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The storage has it.
    Accepted,
    /// The gate refused the stamp, and told which one it has seen, if it tells that.
    Stale(Option<Stamp>),
    /// The gate takes no such name; the storage was not asked.
    NoSuchName,
    /// The storage failed, and may have it.
    Unknown,
    /// The storage failed, and does not have it.
    Failed,
}

impl Outcome {
    /// Whether the gate refused the stamp.
    pub fn is_stale(self) -> bool {
        matches!(self, Self::Stale(_))
    }
}
