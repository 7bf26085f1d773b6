use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::Instant;
use tokio::{select, sync::watch};

use super::{core::Engine, shutdown::ShutdownReport};

/// The drain of a runtime once it has begun; its report when it is over.
#[derive(Debug, Default)]
pub(crate) struct Drain {
    begun: AtomicBool,
    report: OnceLock<watch::Receiver<Option<ShutdownReport>>>,
}

impl Drain {
    /// Whether it has begun, and its report is not there yet.
    fn is_under_way(&self) -> bool {
        let is_over = || self.report.get().is_some_and(|report| report.borrow().is_some());
        self.begun.load(Ordering::SeqCst) && !is_over()
    }
}

impl Engine {
    /// Whether held leases are let end, and no new ones given.
    pub(crate) fn is_draining(&self) -> bool {
        self.drain.is_under_way()
    }

    /// Refuses new leases, lets guards end for at most `time`, then shuts down.
    ///
    /// From the first poll on, acquires are refused and waiting calls get
    /// [`ShutDown`](crate::AcquireError::ShutDown). Held leases are renewed, and can be re-entered,
    /// until their guards end. Their holders are not told of the drain: `lost()` and `cancellation()`
    /// resolve only when `time` is over. If a holder should end early, tell it yourself before you call
    /// this. Once all have ended, or when `time` is over, what is still held is ended as
    /// [`shutdown`](Self::shutdown) does. The server has until `time` is over to confirm releases, and
    /// one command timeout in any case.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the drain under way. Another call waits for the same drain, whose
    /// time stays that of the first call, and yields its report.
    pub async fn drain(self: &Arc<Self>, time: Duration) -> ShutdownReport {
        let mut report = self.drain.report.get_or_init(|| self.begin_drain(time)).clone();
        let drained = match report.wait_for(Option::is_some).await {
            Ok(report) => report.clone(),
            // The tokio runtime that the drain lived on has stopped.
            Err(_) => None,
        };
        match drained {
            Some(report) => report,
            None => self.shutdown(Duration::ZERO).await,
        }
    }

    fn begin_drain(self: &Arc<Self>, time: Duration) -> watch::Receiver<Option<ShutdownReport>> {
        let until = self.clock.now() + time;
        // Set before calls are refused, so that their error says that the runtime drains.
        self.drain.begun.store(true, Ordering::SeqCst);
        self.refuse();
        let (tell, report) = watch::channel(None);
        let engine = Arc::clone(self);
        // A task of its own: the drain goes on when its caller's future is dropped.
        drop(self.cohorts.shared.runtime.spawn(async move {
            engine.until_given_back(until).await;
            let rest = until.saturating_since(engine.clock.now());
            let rest = rest.max(engine.timing.command_timeout);
            tell.send_replace(Some(engine.shutdown(rest).await));
        }));
        report
    }

    /// Waits until no lease is held, at most until `until`.
    async fn until_given_back(&self, until: Instant) {
        loop {
            let mut leases = self.cohorts.shared.watches.leases();
            leases.retain(|lease| lease.state().is_held());
            if leases.is_empty() {
                return;
            }
            for lease in leases {
                select! {
                    biased;
                    _ = lease.lost() => {}
                    () = self.clock.sleep_until(until) => return,
                }
            }
        }
    }
}
