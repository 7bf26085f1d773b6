use std::fmt;

/// How a call may have waited for its own process: a possibility, named by timeouts and a warning.
///
/// It is named if a lease of this process was held for the whole of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelfWait {
    /// A nested acquire: the call came without an owner, from the task that had acquired the lock.
    WithoutOwner,
    /// A nested acquire: the call came from the task that had acquired the lock, with another
    /// owner.
    OtherOwner,
    /// The lock was acquired in an owner's scope, and the call came from another task, outside of
    /// every scope: a spawned task does not inherit one.
    OutsideScope,
}

impl fmt::Display for SelfWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WithoutOwner => {
                "the same task acquired the lock before, and this nested acquire has no owner; if the \
                 task waits for itself, use guard.reenter(), or give one owner to both with \
                 .owner(&owner) or owner.scope()"
            }
            Self::OtherOwner => {
                "the same task acquired the lock before, and this nested acquire has another owner; \
                 if the task waits for itself, give the owner of the first acquire to both"
            }
            Self::OutsideScope => {
                "the lock was acquired in an owner's scope, and this acquire is outside of it; if it \
                 works for the holder, note that a spawned task does not inherit the scope: spawn \
                 owner.scope(future), or acquire with .owner(&owner)"
            }
        })
    }
}
