use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Instant, LockStore, StoreError,
    metric::{Metrics, ReleaseOutcome, ReleaseVia},
    store::{Release, ReleaseAnswer},
};
use tokio::{select, task::JoinSet};

use crate::{batch::Renewed, lease::HeldLease, watchlist::Watchlist, work::Work};

/// The watchdog's task: sleeps until something is due, sends it, and applies what comes back.
#[derive(Debug)]
pub(crate) struct Driver {
    watchlist: Arc<Watchlist>,
    store: Arc<dyn LockStore>,
    metrics: Arc<Metrics>,
    // Aborted with the driver: nothing outlives it.
    in_flight: JoinSet<Done>,
    shown_at: Instant,
}

/// What a command on its way came to.
#[derive(Debug)]
enum Done {
    Renewed(Renewed),
    Ended(Arc<HeldLease>, Result<ReleaseAnswer, StoreError>),
}

impl Driver {
    /// How often metrics are shown anew.
    const TICK: Duration = Duration::from_secs(5);

    pub(crate) fn new(
        watchlist: Arc<Watchlist>,
        store: Arc<dyn LockStore>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let shown_at = Instant::default();
        Self { watchlist, store, metrics, in_flight: JoinSet::new(), shown_at }
    }

    pub(crate) async fn run(mut self) {
        while let Some(work) = self.watchlist.take_due(self.watchlist.clock.now()) {
            self.send(work);
            self.show_metrics();
            let until = self.watchlist.sleep_until(self.shown_at + Self::TICK);
            select! {
                biased;
                Some(done) = self.in_flight.join_next(), if !self.in_flight.is_empty() => {
                    // A command that panicked has reported itself as unconfirmed.
                    if let Ok(done) = done {
                        self.apply(done);
                    }
                }
                () = self.watchlist.wake.notified() => {}
                () = self.watchlist.clock.sleep_until(until) => {}
            }
        }
    }

    fn send(&mut self, work: Work) {
        for (key, claim) in work.expired {
            // Expired first: a shutdown sees the claim or its withdrawal.
            claim.expire();
            self.watchlist.remove(key);
        }
        for lag in work.lags {
            self.metrics.store().renewal_lag(lag);
        }
        for batch in work.batches {
            let renewing = batch.renew(Arc::clone(&self.store), Arc::clone(&self.watchlist));
            self.in_flight.spawn(async { Done::Renewed(renewing.await) });
        }
        for lease in work.overdue {
            self.in_flight.spawn(end(Arc::clone(&self.store), lease));
        }
    }

    fn apply(&self, done: Done) {
        match done {
            Done::Renewed(renewed) => self.apply_renewed(renewed),
            Done::Ended(lease, answer) => {
                let outcome = match answer {
                    Ok(ReleaseAnswer::Gone) => ReleaseOutcome::Gone,
                    Ok(_) => ReleaseOutcome::Released,
                    Err(error) => {
                        self.metrics.store().error(error.kind());
                        ReleaseOutcome::Unconfirmed
                    }
                };
                lease.metrics().release(outcome, ReleaseVia::MaxHold);
            }
        }
    }

    fn apply_renewed(&self, renewed: Renewed) {
        let (now, sent_at) = (self.watchlist.clock.now(), renewed.sent_at);
        match &renewed.answers {
            Ok(_) => self.metrics.store().renewal(now.saturating_since(sent_at)),
            Err(error) => {
                self.metrics.store().error(error.kind());
                tracing::warn!(%error, "a renewal failed; it is tried again until the deadline");
            }
        }
        for (key, lease, attempt) in renewed.settle(now) {
            self.watchlist.answered(key, &lease, sent_at, attempt);
        }
    }

    /// Describes and zeroes series anew, for a recorder that may have come meanwhile.
    fn show_metrics(&mut self) {
        let now = self.watchlist.clock.now();
        if now >= self.shown_at + Self::TICK || self.shown_at == Instant::default() {
            self.metrics.show();
            self.shown_at = now;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Also when the task panics or its tokio runtime stops.
        self.watchlist.abandon();
    }
}

/// Ends a lease on the server whose holder no longer believes in it.
async fn end(store: Arc<dyn LockStore>, lease: Arc<HeldLease>) -> Done {
    let deadline = lease.clock().now() + lease.ttl().get() / 3;
    let (name, id, fence) = (lease.name(), lease.id(), lease.fence());
    let answer = store.release(Release { name, id, fence, keep: None, deadline }).await;
    Done::Ended(lease, answer)
}
