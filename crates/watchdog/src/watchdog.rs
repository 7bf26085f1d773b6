use std::{fmt, sync::Arc};

use leasehold_core::{
    AtHome, Instant, LockName,
    lease::{Grant, LossReason},
    metric::Metrics,
    outage::{Subject, WatchedStore},
    store::Inspect,
};
use tokio::{runtime::Handle, select, task::JoinSet};

use crate::{
    durations::TICK,
    renewal::AnsweredBatch,
    watches::{DueWork, Watches},
};

/// The owner of the turns of a runtime, which hears when a turn is lost.
pub trait TurnKeeper: fmt::Debug + Send + Sync + 'static {
    /// Takes note that a turn is lost. Its lease is lost already; its lock stays closed until
    /// `closed_until`. Must not block.
    fn lost(&self, turn: &Grant, reason: LossReason, closed_until: Option<Instant>);

    /// How many tasks wait for a lock.
    fn waiting(&self) -> usize;

    /// How many turns are kept idle.
    fn idle(&self) -> usize;
}

/// Renews the turns of one runtime and notices the ones that end.
///
/// One task does all of it, and ends when this handle is dropped. If the task dies earlier, every
/// lease that it watched is lost at once, because nothing renews it any more.
#[derive(Debug)]
pub struct Watchdog {
    watches: Arc<Watches>,
}

impl Watchdog {
    /// Starts the task on a tokio runtime.
    pub fn start(
        runtime: &Handle,
        watches: Arc<Watches>,
        store: Arc<WatchedStore>,
        keeper: Arc<dyn TurnKeeper>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let driver = Driver {
            watches: Arc::clone(&watches),
            store,
            keeper,
            metrics,
            in_flight: JoinSet::new(),
            shown_at: Instant::default(),
        };
        let outages = watches.outages();
        drop(runtime.spawn(AtHome::new(outages.origin(), outages.clock(), Box::pin(driver.run()))));
        Self { watches }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // In a fork of the process there is no task to end.
        if self.watches.is_here() {
            self.watches.stop();
        }
    }
}

#[derive(Debug)]
struct Driver {
    watches: Arc<Watches>,
    store: Arc<WatchedStore>,
    keeper: Arc<dyn TurnKeeper>,
    metrics: Arc<Metrics>,
    // Aborted with the driver: nothing outlives it.
    in_flight: JoinSet<Option<AnsweredBatch>>,
    shown_at: Instant,
}

impl Driver {
    async fn run(mut self) {
        while let Some(work) = self.watches.take_due(self.watches.clock().now()) {
            self.send(work);
            self.show();
            let now = self.watches.clock().now();
            let until = self.watches.sleep_until(now, self.shown_at + TICK);
            select! {
                biased;
                Some(done) = self.in_flight.join_next(), if !self.in_flight.is_empty() => {
                    // A command that panicked has reported itself as unconfirmed; a probe needs nothing.
                    if let Ok(Some(answered)) = done {
                        self.apply(answered);
                    }
                }
                () = self.watches.wake.notified() => {}
                () = self.watches.clock().sleep_until(until) => {}
            }
        }
    }

    fn send(&mut self, work: DueWork) {
        for lag in work.lags {
            self.metrics.store().renewal_lag(lag);
        }
        for batch in work.batches.into_commands() {
            for part in batch.by_shard(|name| self.store.shard(name)) {
                let (store, watches) = (Arc::clone(&self.store), Arc::clone(&self.watches));
                self.in_flight.spawn(async move { Some(part.renew(store, watches).await) });
            }
        }
        for (turn, reason, closed_until) in work.lost {
            self.keeper.lost(&turn, reason, closed_until);
        }
    }

    fn apply(&self, answered: AnsweredBatch) {
        let now = self.watches.clock().now();
        let metrics = self.metrics.store();
        match &answered.answers {
            Ok(answers) => {
                let failures = answers.iter().filter_map(|answer| answer.as_ref().err());
                failures.for_each(|error| metrics.error(error.kind()));
                if answers.iter().any(Result::is_ok) {
                    metrics.renewal(now.saturating_since(answered.sent_at));
                }
            }
            Err(error) => metrics.error(error.kind()),
        }
        for (turn, reason) in answered.apply(now, &self.watches) {
            self.keeper.lost(&turn, reason, None);
        }
    }

    /// Describes and zeroes the series again, for a recorder that was installed meanwhile.
    fn show(&mut self) {
        let now = self.watches.clock().now();
        if now >= self.shown_at + TICK || self.shown_at == Instant::default() {
            let unreachable = self.watches.outages().state().unreachable_for(now);
            self.metrics.store().unreachable(unreachable);
            self.metrics.store().idle(self.keeper.idle());
            self.metrics.show(now);
            self.shown_at = now;
            self.log_outage(now);
            self.probe(now);
        }
    }

    /// Logs which commands failed, and what depends on the server.
    fn log_outage(&self, now: Instant) {
        let outages = self.watches.outages();
        outages.tick(now, self.watches.held(), self.keeper.waiting());
    }

    /// Asks a server that is out of reach whether it is back, if no other command does.
    fn probe(&mut self, now: Instant) {
        if !self.watches.outages().state().needs_probe() {
            return;
        }
        let Ok(name) = LockName::new(Subject::PROBE) else { return };
        let store = Arc::clone(&self.store);
        self.in_flight.spawn(async move {
            // The store itself notes the answer. None is in flight when the next probe is due.
            let _ = store.ask(now, Inspect { names: vec![name] }, now + TICK / 2).await;
            None
        });
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Runs also when the task panics or its tokio runtime stops.
        for turn in self.watches.abandon() {
            self.keeper.lost(&turn, LossReason::WatchdogStopped, None);
        }
        self.log_outage(self.watches.clock().now());
    }
}
