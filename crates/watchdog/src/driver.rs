use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Instant, LockName, LockStore,
    lease::{Grant, LossReason},
    metric::Metrics,
    outage::{AtStake, Subject},
};
use tokio::{select, task::JoinSet};

use crate::{batch::Renewed, keeper::TurnKeeper, watchlist::Watchlist, work::Work};

/// The watchdog's task: sleeps until something is due, sends it, and applies what comes back.
#[derive(Debug)]
pub(crate) struct Driver {
    watchlist: Arc<Watchlist>,
    store: Arc<dyn LockStore>,
    keeper: Arc<dyn TurnKeeper>,
    metrics: Arc<Metrics>,
    // Aborted with the driver: nothing outlives it.
    in_flight: JoinSet<Renewed>,
    probes: JoinSet<()>,
    shown_at: Instant,
}

impl Driver {
    /// How often metrics are shown anew, and outages looked at.
    const TICK: Duration = Duration::from_secs(5);
    /// How long a probe waits for its answer.
    const PROBE: Duration = Duration::from_secs(2);

    pub(crate) fn new(
        watchlist: Arc<Watchlist>,
        store: Arc<dyn LockStore>,
        keeper: Arc<dyn TurnKeeper>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let (in_flight, probes, shown_at) = (JoinSet::new(), JoinSet::new(), Instant::default());
        Self { watchlist, store, keeper, metrics, in_flight, probes, shown_at }
    }

    pub(crate) async fn run(mut self) {
        while let Some(work) = self.watchlist.take_due(self.watchlist.clock().now()) {
            self.send(work);
            self.show();
            let until = self.watchlist.sleep_until(self.shown_at + Self::TICK);
            select! {
                biased;
                Some(done) = self.in_flight.join_next(), if !self.in_flight.is_empty() => {
                    // A command that panicked has reported itself as unconfirmed.
                    if let Ok(renewed) = done {
                        self.apply(renewed);
                    }
                }
                () = self.watchlist.wake.notified() => {}
                () = self.watchlist.clock().sleep_until(until) => {}
            }
        }
    }

    fn send(&mut self, work: Work) {
        for lag in work.lags {
            self.metrics.store().renewal_lag(lag);
        }
        for batch in work.batches {
            let renewing = batch.renew(Arc::clone(&self.store), Arc::clone(&self.watchlist));
            self.in_flight.spawn(renewing);
        }
        for (turn, reason, closed_until) in work.lost {
            self.keeper.lost(&turn, reason, closed_until);
        }
    }

    fn apply(&self, renewed: Renewed) {
        let now = self.watchlist.clock().now();
        match &renewed.answers {
            Ok(_) => self.metrics.store().renewal(now.saturating_since(renewed.sent_at)),
            Err(error) => self.metrics.store().error(error.kind()),
        }
        self.tell(renewed.settle(now, &self.watchlist), LossReason::Gone);
    }

    fn tell(&self, lost: Vec<Arc<Grant>>, reason: LossReason) {
        for turn in lost {
            self.keeper.lost(&turn, reason, None);
        }
    }

    /// Describes and zeroes series anew, for a recorder that may have come meanwhile.
    fn show(&mut self) {
        let now = self.watchlist.clock().now();
        if now >= self.shown_at + Self::TICK || self.shown_at == Instant::default() {
            let unreachable = self.watchlist.common().outages().unreachable_for(now);
            self.metrics.store().unreachable(unreachable);
            self.metrics.show(now);
            self.shown_at = now;
            self.tell_outage(now);
            self.probe(now);
        }
    }

    /// Logs what has failed, and what depends on the server.
    fn tell_outage(&self, now: Instant) {
        self.watchlist.common().outages().tick(now, || AtStake {
            leases: self.watchlist.held(),
            waiting: self.keeper.waiting(),
        });
    }

    /// Asks a server that is out of reach whether it is back, where nobody else asks.
    fn probe(&mut self, now: Instant) {
        while self.probes.try_join_next().is_some() {}
        if !self.watchlist.common().outages().needs_probe() {
            return;
        }
        let Ok(name) = LockName::new(Subject::PROBE) else { return };
        let store = Arc::clone(&self.store);
        self.probes.spawn(async move {
            // The answer is told to whoever watches the store.
            let _ = store.inspect(&name, now + Self::PROBE).await;
        });
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Also when the task panics or its tokio runtime stops.
        self.tell(self.watchlist.abandon(), LossReason::WatchdogStopped);
        self.tell_outage(self.watchlist.clock().now());
    }
}
