//! Waiting in real time, with ceilings that only a failure reaches.
#![expect(clippy::disallowed_methods, reason = "real servers and processes take real time")]

use std::{
    future::ready,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use leasehold::time::{Clock, SystemClock};
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

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, where there is no tokio runtime.
pub(crate) fn without_tokio<T>(future: impl IntoFuture<Output = T>) -> T {
    let mut future = pin!(future.into_future());
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let started = SystemClock.now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let waited = SystemClock.now().saturating_since(started);
        assert!(waited < CEILING, "not within {CEILING:?}");
        // Woken by the future, or to look at the ceiling: not to poll in its place.
        thread::park_timeout(CEILING.saturating_sub(waited));
    }
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
