use std::time::Duration;

use leasehold::{
    LockRuntime,
    once::{Begun, Duplicate, Once, OnceGuard},
};

use crate::support::World;

/// The name that the tests are about.
pub(crate) const NAME: &str = World::NAME;

/// The window of the tests.
pub(crate) const WINDOW: Duration = Duration::from_secs(60);

/// A submission, with a window of a minute.
pub(crate) fn submission(locks: &LockRuntime) -> Once {
    locks.once(NAME).unwrap().window(WINDOW)
}

/// The run of the first one.
pub(crate) async fn first(locks: &LockRuntime) -> OnceGuard {
    match submission(locks).begin().await.unwrap() {
        Begun::First(run) => run,
        Begun::Duplicate(duplicate) => panic!("nobody was before: {duplicate}"),
    }
}

/// What somebody hears who comes later.
pub(crate) async fn duplicate(locks: &LockRuntime) -> Duplicate {
    match submission(locks).begin().await.unwrap() {
        Begun::First(run) => panic!("somebody was before {run:?}"),
        Begun::Duplicate(duplicate) => duplicate,
    }
}
