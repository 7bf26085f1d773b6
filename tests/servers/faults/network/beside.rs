use std::time::Duration;

use leasehold::{Guard, LockRuntime, Released};
use tokio::runtime::Runtime;

use super::net::Net;
use crate::support::{patient, wait};

/// A holder in this process, whose lease is renewed while the faults strike.
#[derive(Debug)]
pub(super) struct Beside {
    runtime: Runtime,
    locks: LockRuntime,
    guard: Guard,
}

impl Beside {
    pub(super) const TTL: Duration = Duration::from_secs(3);

    /// Connects and takes a lock of its own.
    pub(super) fn start(net: &Net) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a tokio runtime");
        let (locks, guard) = runtime.block_on(async {
            let builder = patient::builder().ttl(Self::TTL);
            let locks = builder.connect(&net.url()).await.expect("the server answers");
            let acquiring = locks.lock("beside").expect("a name").acquire().wait(wait::CEILING);
            let guard = acquiring.await.expect("a lease");
            (locks, guard)
        });
        Self { runtime, locks, guard }
    }

    /// Waits until the lease has been renewed.
    pub(super) fn until_renewed(&self) {
        let mut last = self.guard.remaining();
        wait::block_until("the lease is renewed", || {
            assert!(self.guard.is_held(), "{:?}", self.guard.lease().state());
            let now = self.guard.remaining();
            now > std::mem::replace(&mut last, now)
        });
    }

    /// Gives the lease back, which was held to the end, and shuts down.
    pub(super) fn finish(self) {
        let Self { runtime, locks, guard } = self;
        runtime.block_on(async {
            let released = guard.release().await.expect("held to the end");
            assert_eq!(released, Released::Ended);
            let report = locks.shutdown(wait::CEILING).await;
            assert_eq!((report.held, report.unreleased), (0, Vec::new()));
        });
    }
}
