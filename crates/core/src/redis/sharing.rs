use std::sync::{Arc, atomic::AtomicBool};

/// Which commands share calls.
#[derive(Debug, Clone)]
pub(super) enum Sharing {
    /// Any.
    All,
    /// None.
    None,
    /// Those of the fast path, on a node of a Cluster that was seen to take such calls, see
    /// [`SharedCallPolicy`](super::shared_calls::SharedCallPolicy).
    Quick(Arc<AtomicBool>),
}
