//! What the rows of this room share: runtimes, the keys of a lock, and what errors have to say.

use std::time::Duration;

use leasehold::{
    LockRuntime,
    error::{AcquireError, StoreError, StoreErrorKind},
};
use leasehold_testkit::RedisServer;

use crate::support::{patient, wait};

/// Longer than any of these rows takes.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// A runtime with long leases, whose waiters ask again every quarter of a second.
pub(super) async fn connect(url: &str) -> LockRuntime {
    let builder = patient::builder().ttl(LONG).claim_window(Duration::from_secs(1));
    builder.connect(url).await.expect("the server lets it in")
}

/// A key of a lock: `lease`, `queue` or `waiters`.
pub(super) fn key(lock: &str, what: &str) -> String {
    format!("leasehold:{{{lock}}}:{what}")
}

/// Whether a key is there.
pub(super) fn exists(server: &RedisServer, key: &str) -> bool {
    server.query(&["EXISTS", key])
}

/// Replaces what is under a key by a command: its verb, and what comes behind the key.
pub(super) fn replace(server: &RedisServer, key: &str, command: &[&str]) {
    server.command(&["DEL", key]);
    server.command(&[&command[..1], &[key], &command[1..]].concat());
}

/// All that is under a key.
pub(super) fn dump(server: &RedisServer, key: &str) -> Option<Vec<u8>> {
    server.query(&["DUMP", key])
}

/// The error of the store that an acquire met, which names the lock.
pub(super) fn refusal(outcome: Result<impl Sized, AcquireError>) -> StoreError {
    match outcome {
        Err(AcquireError::Store(error)) => {
            assert!(error.lock().is_some(), "{error}");
            error
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("the lock was granted"),
    }
}

/// Whether an error is of a kind, and its text has these words.
pub(super) fn assert_says(error: &StoreError, kind: StoreErrorKind, words: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

/// Takes the lock as soon as it is free, and gives it back; returns the fence.
pub(super) async fn use_lock(locks: &LockRuntime, lock: &str) -> u64 {
    let lock = locks.lock(lock).expect("a name");
    let guard = lock.acquire().wait(wait::CEILING).await.expect("it becomes free");
    let fence = guard.fence().get();
    guard.release().await.expect("held to the end");
    fence
}
