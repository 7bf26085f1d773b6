//! What an acquire says that the server refused.

use leasehold::{
    LockRuntime,
    error::{AcquireError, StoreErrorKind},
};

/// Tries a lock that the server refuses to grant, and checks the error: the command has not run,
/// and its words name the lock and the server, and say what happened and what to do.
pub(super) async fn of(locks: &LockRuntime, name: &str, what: &str, remedy: &str) {
    let tried = locks.lock(name).expect("a name").try_acquire().await;
    let error = tried.expect_err("the server refuses");
    let AcquireError::Unavailable(refused) = &error else { panic!("{error:?}") };
    assert_eq!(refused.error.kind(), StoreErrorKind::Definite, "{error}");
    assert_says(&error.to_string(), &[&format!("lock {name:?}"), "(at ", what, remedy]);
}

/// Whether a text has all its words.
pub(super) fn assert_says(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not said: {text}");
    }
}
