//! For the tests of Leasehold: what of the embedded store they can lose and copy.
//!
//! Not part of the public interface.

pub use crate::memory::Copied;

/// A part of what the embedded store keeps of a name, for tests that lose one alone. Each is a key
/// in Redis, which can be evicted alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Who holds the lock, and the fence counter.
    Lock,
    /// The order of the waiters.
    Queue,
    /// The places of the waiters: until its next heartbeat, none of them counts as alive.
    Waiters,
    /// The marks of withdrawn acquisitions.
    Marks,
}
