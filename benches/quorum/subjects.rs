//! Who takes locks.

#[path = "../contention/subjects/leasehold.rs"]
#[expect(dead_code, reason = "a task waits for its releases")]
pub(crate) mod leasehold;
#[path = "../contention/subjects/rslock.rs"]
pub(crate) mod rslock;
