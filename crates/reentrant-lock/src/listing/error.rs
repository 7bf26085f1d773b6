use leasehold_core::StoreError;

/// Why some locks, or one, are missing in a [`LockList`](super::LockList).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// This lock could not be read, as when its key holds data of another program; the list goes
    /// on.
    #[error(transparent)]
    Lock(StoreError),
    /// A part of the store, such as a master of a Cluster, did not answer; the list goes on with
    /// the others.
    #[error("a part of the store is left out: {0}")]
    Part(StoreError),
    /// The store gave no usable answer; this is the end of the list.
    #[error("the list is not complete: {0}")]
    Ended(StoreError),
}

impl ListError {
    /// Returns the failure of the store.
    pub fn store_error(&self) -> &StoreError {
        let (Self::Lock(error) | Self::Part(error) | Self::Ended(error)) = self;
        error
    }
}
