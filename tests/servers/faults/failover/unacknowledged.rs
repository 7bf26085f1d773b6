//! A try for a lock that no replica acknowledges.

use std::time::Duration;

use leasehold::{LockRuntime, error::AcquireError, redis::Replication};

/// One replica, soon.
fn one() -> Replication {
    Replication::wait(1, Duration::from_millis(300)).unwrap()
}

/// Tries, and fails for want of a replica.
pub(super) async fn try_in_vain(locks: &LockRuntime, name: &str) {
    let lock = locks.lock(name).expect("a name");
    let failed = lock.acquire().replication(one()).try_acquire().await;
    let failed = failed.expect_err("no replica has it");
    let AcquireError::Unavailable(why) = &failed else { panic!("{failed}") };
    assert!(why.error.is_unacknowledged(), "{failed}");
    assert!(failed.to_string().contains("needs 1 replica to acknowledge it"), "{failed}");
}
