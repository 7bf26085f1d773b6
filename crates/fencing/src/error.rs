use std::fmt;

use leasehold_core::{Stamp, StoreError, StoreErrorKind};

/// Why a gate did not admit a write.
///
/// Only [`GateError::Stale`] says that the lease was taken over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// Another holder has taken over.
    #[error(transparent)]
    Stale(#[from] StaleFence),
    /// The storage behind the gate failed; its kind says whether the write may have happened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The resource cannot have a watermark in this storage; nothing was sent.
    #[error(transparent)]
    Resource(#[from] ResourceError),
    /// The caller's own script failed within the gate.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The database aborted the transaction because of another one; repeat it with the same stamp.
    #[error(transparent)]
    Conflict(#[from] TransactionConflict),
    /// An object store has the new watermark, but an earlier holder may still replace the object.
    #[error(transparent)]
    NotShutOut(#[from] NotShutOut),
}

/// A write was refused because the storage has seen a fence that shuts it out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a write to {resource:?} was refused: its fence {} (lease {}) is stale, the storage has seen \
     {} (lease {}); the lease was taken over by another holder: stop writing and acquire the lock again",
    presented.fence, presented.lease, highest.fence, highest.lease
)]
pub struct StaleFence {
    /// What the writer presented.
    pub presented: Stamp,
    /// The highest stamp that the resource has seen.
    pub highest: Stamp,
    /// The resource that was to be written.
    pub resource: Box<str>,
}

/// Why a resource cannot have a watermark in the storage of a gate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The key is empty.
    #[error("the key of a fenced value is empty; give it a name")]
    Empty,
    /// The key contains `}` but no hash tag, so no second key can share its slot.
    #[error(
        "the key {0:?} of a fenced value contains '}}' but no hash tag, so its watermark cannot \
         share its slot; put a part of it between braces, or remove the brace"
    )]
    BreaksHashTag(Box<str>),
    /// The key contains a NUL character.
    #[error("the key {0:?} of a fenced value contains a NUL character; remove it")]
    ContainsNul(Box<str>),
    /// The key is that of another value's watermark.
    #[error(
        "the key {0:?} is that of a watermark, which only the gate writes; choose another key for \
         the value"
    )]
    IsWatermark(Box<str>),
    /// A script was given a key that does not belong to its resource.
    #[error(
        "the key {key:?} does not belong to the resource {resource:?}, so this gate does not guard \
         it; name it {resource:?} or {resource:?} with `:` and more behind, or pass it as one of \
         the others of `call_with_others`"
    )]
    ForeignKey {
        /// The key.
        key: Box<str>,
        /// The resource of the call.
        resource: Box<str>,
    },
    /// The name is not the path of one object.
    #[error(
        "the resource {0:?} is not the path of one object, because Path::parse() and Path::from() \
         read it differently; give ObjectGate::advance() the path that you write, or use a name \
         of plain ASCII letters, without empty parts, '.', '..', '%', '~' and the like"
    )]
    NotAPath(Box<str>),
    /// The resource is longer than the storage can index.
    #[error("the name of a fenced resource has {bytes} bytes; use at most {limit}")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
}

#[cfg(any(feature = "object-store", feature = "postgres"))]
impl ResourceError {
    /// Refuses a name without any byte, or with more than the limit.
    pub(crate) fn check_length(resource: &str, limit: usize) -> Result<(), Self> {
        match resource.len() {
            0 => Err(Self::Empty),
            bytes if bytes > limit => Err(Self::TooLong { bytes, limit }),
            _ => Ok(()),
        }
    }
}

/// A script that was wrapped in a gate failed.
///
/// The fence stays the watermark, and what the script wrote before it failed stays too, as with
/// every Redis script; one that does not compile has not run at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the script behind the gate of {resource:?} failed: {message}; correct the script, what it \
     wrote before it failed stays"
)]
pub struct BodyError {
    /// The resource whose gate had admitted the script.
    pub resource: Box<str>,
    /// What the server or the script said.
    pub message: Box<str>,
}

/// An `advance` moved the watermark of an object, and did not shut out a holder that had looked
/// before.
///
/// The ETag stayed the same, because the store makes it from the bytes alone, and an `advance`
/// writes the same bytes. So the condition of that holder is still true, until other bytes are
/// written. Older holders that look now are refused. A repeat is admitted as
/// [`Again`](crate::Admitted::Again), and proves nothing more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the watermark of {resource:?} has moved to {} (lease {}), but the ETag stayed the same, as the \
     store makes it from the bytes alone: a holder who looked before can still replace the object; on \
     this store write by put() alone, and nothing that depends on what was read, or use a store whose \
     ETags change with every write (on S3: a bucket with SSE-KMS)",
    presented.fence, presented.lease
)]
pub struct NotShutOut {
    /// The stamp that is the watermark now.
    pub presented: Stamp,
    /// The path of the object.
    pub resource: Box<str>,
}

/// A database aborted a transaction because of another one that ran at the same time.
///
/// Nothing of it was kept, and it says nothing about the lease. Roll back and run all of it again
/// with the same stamp: if another holder has taken over, the gate refuses it then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{during} met another transaction, {kind}: {message}; roll back and run the whole transaction \
     again with the same stamp"
)]
pub struct TransactionConflict {
    /// Why the two transactions could not both go on.
    pub kind: ConflictKind,
    /// What was being done.
    pub during: Box<str>,
    /// What the server said.
    pub message: Box<str>,
}

/// Why two transactions could not both go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConflictKind {
    /// They could not have run one after the other; SQLSTATE 40001.
    Serialization,
    /// Each waited for the other; SQLSTATE 40P01.
    Deadlock,
}

impl fmt::Display for ConflictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Serialization => "SQLSTATE 40001",
            Self::Deadlock => "SQLSTATE 40P01",
        })
    }
}

/// The error of a watermark that is no stamp.
pub(crate) fn not_a_stamp(holds: &str, resource: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!("the watermark holds {holds}, which is not the stamp of a lease"),
        "find out who wrote it, then set it to the stamp of the last holder, or delete it while nobody writes",
    )
    .for_resource(resource)
}

#[cfg(test)]
mod tests {
    use leasehold_testing::stamp;

    use super::*;

    #[test]
    fn a_refusal_names_the_resource_and_the_remedy() {
        let (presented, highest) = (stamp(41, 1), stamp(42, 2));
        let error = GateError::from(StaleFence { presented, highest, resource: "stock/7".into() });
        let text = error.to_string();
        for words in ["\"stock/7\"", "fence 41", ":1)", "seen 42", ":2)", "acquire the lock again"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
