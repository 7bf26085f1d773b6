//! Waiting in real time, with ceilings that only a failure reaches.
#![expect(clippy::disallowed_methods, reason = "real servers and processes take real time")]

use std::{future::ready, time::Duration};

use leasehold_testkit::Patience;

/// Far more than anything takes, even on a busy machine.
pub(crate) const CEILING: Duration = Duration::from_secs(25);

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let probe = || ready(holds().then_some(()));
    let seen = Patience::of(CEILING).until_async(probe).await;
    assert!(seen.is_some(), "not within {CEILING:?}: {what}");
}

/// Blocks this thread until something holds.
pub(crate) fn block_until(what: &str, mut holds: impl FnMut() -> bool) {
    let seen = Patience::of(CEILING).until(|| holds().then_some(()));
    assert!(seen.is_some(), "not within {CEILING:?}: {what}");
}

/// Runs a future on one thread, as a small service would.
pub(crate) fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a tokio runtime").block_on(future)
}

/// Lets the tasks of this thread see what has come meanwhile.
pub(crate) async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// The output of a future that does not take for ever.
pub(crate) async fn soon<T>(what: &str, future: impl IntoFuture<Output = T>) -> T {
    let output = tokio::time::timeout(CEILING, future).await;
    output.unwrap_or_else(|late| panic!("not within {CEILING:?} ({late}): {what}"))
}
