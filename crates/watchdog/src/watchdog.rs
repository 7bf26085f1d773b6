use std::{fmt, mem, sync::Arc, time::Duration};

use leasehold_core::{
    AtHome, Instant, LOOK, StoreError, StoreErrorKind, Terms,
    lease::{Grant, LossReason},
    metric::{Metrics, RenewalOutcome},
    outage::WatchedStore,
    store::{RenewAnswer, Renewal, Renewals},
};
use tokio::{runtime::Handle, select, task::JoinSet};

use crate::{
    Key,
    batch::{Attempt, RenewalBatch},
    durations::TICK,
    lease::HeldLease,
    watches::{DueWork, Watch, Watches},
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
            self.look();
            let now = self.watches.clock().now();
            let tick = self.shown_at + TICK;
            let look_at = self.watches.outages().state().look_at();
            let next = look_at.map_or(tick, |look| look.min(tick));
            let until = self.watches.sleep_until(now, next);
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
        if answered.answers.as_ref().is_ok_and(|answers| answers.iter().any(Result::is_ok)) {
            self.metrics.store().renewal(now.saturating_since(answered.sent_at));
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
        if self.watches.outages().state().needs_probe() {
            self.ask(now, TICK / 2);
        }
    }

    fn look(&mut self) {
        let now = self.watches.clock().now();
        let outages = self.watches.outages();
        if outages.state().look_at().is_some_and(|at| at <= now) {
            outages.looked(now);
            self.ask(now, LOOK);
        }
    }

    fn ask(&mut self, now: Instant, patience: Duration) {
        let store = Arc::clone(&self.store);
        self.in_flight.spawn(async move {
            store.probe_all(now, now + patience).await;
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

impl RenewalBatch {
    /// Sends the command, and waits for its answers.
    pub(crate) async fn renew(
        self,
        store: Arc<WatchedStore>,
        watches: Arc<Watches>,
    ) -> AnsweredBatch {
        let renewal = |(_, turn): &(Key, Arc<Grant>)| {
            let (name, Terms { ttl, acks, .. }) = (turn.name().clone(), turn.terms());
            Renewal { name, id: turn.id(), fence: turn.first(), ttl, acks }
        };
        let batch = self.turns.iter().map(renewal).collect();
        let sent_at = watches.clock().now();
        let mut unanswered = UnansweredBatch { watches, turns: self.turns };
        let answers = store.ask(sent_at, Renewals { batch }, sent_at + self.patience).await;
        AnsweredBatch { turns: mem::take(&mut unanswered.turns), sent_at, answers }
    }
}

/// Renewals without an answer: if the store panics, they are unconfirmed and tried again.
#[derive(Debug)]
struct UnansweredBatch {
    watches: Arc<Watches>,
    turns: Vec<(Key, Arc<Grant>)>,
}

impl Drop for UnansweredBatch {
    fn drop(&mut self) {
        let (turns, now) = (mem::take(&mut self.turns), self.watches.clock().now());
        let unanswered = AnsweredBatch { turns, sent_at: now, answers: Ok(Vec::new()) };
        drop(unanswered.apply(now, &self.watches));
    }
}

#[derive(Debug)]
pub(crate) struct AnsweredBatch {
    pub(crate) turns: Vec<(Key, Arc<Grant>)>,
    pub(crate) sent_at: Instant,
    /// Where one is missing, it is unknown whether the turn was renewed.
    pub(crate) answers: Result<Vec<Result<RenewAnswer, StoreError>>, StoreError>,
}

impl AnsweredBatch {
    /// Applies the answers, and returns the turns that are lost, and why.
    pub(crate) fn apply(self, now: Instant, watches: &Watches) -> Vec<(Arc<Grant>, LossReason)> {
        let Self { turns, sent_at, answers } = self;
        let (mut answers, failure) = match answers {
            Ok(answers) => (answers.into_iter(), None),
            Err(error) => (Vec::new().into_iter(), Some(error)),
        };
        let kind = failure.as_ref().map_or(StoreErrorKind::Indeterminate, StoreError::kind);
        let (mut lost, mut attempts) = (Vec::new(), Vec::with_capacity(turns.len()));
        for (key, _) in turns {
            let lease = watches.holder(Watch(key));
            let answer = answers.next();
            let error = answer.as_ref().map_or(failure.as_ref(), |answer| answer.as_ref().err());
            if let (Some(lease), Some(error)) = (&lease, error) {
                lease.not_renewed(error.clone());
            }
            let answer = answer.map_or(Err(kind), |one| one.map_err(|error| error.kind()));
            // The answer is about the turn, so it counts for the lease that is held by now.
            match apply_one(lease.as_deref(), now, sent_at, &answer) {
                Ok(attempt) => attempts.push((key, attempt)),
                Err(reason) => lost.push((key, reason)),
            }
        }
        watches.answered(now, attempts.into_iter());
        // A lease of the turn that was taken meanwhile is lost too.
        let turn_of = |(key, reason)| Some((watches.remove(key)?.lose(reason), reason));
        lost.into_iter().filter_map(turn_of).collect()
    }
}

/// Applies one answer; it fails if there is nothing left to renew.
fn apply_one(
    lease: Option<&HeldLease>,
    now: Instant,
    sent_at: Instant,
    answer: &Result<RenewAnswer, StoreErrorKind>,
) -> Result<Attempt, LossReason> {
    let (outcome, attempt) = match answer {
        Ok(RenewAnswer::Renewed { remaining }) => match lease {
            Some(lease) if lease.renewed(now, sent_at, *remaining) => {
                (RenewalOutcome::Renewed, Ok(Attempt::Confirmed))
            }
            Some(_) => (RenewalOutcome::Lost, Ok(Attempt::Unconfirmed)),
            // The next lease of the turn does not know of this renewal: renew again.
            None => (RenewalOutcome::Renewed, Ok(Attempt::Unconfirmed)),
        },
        Ok(RenewAnswer::Gone) => (RenewalOutcome::Lost, Err(LossReason::Gone)),
        Ok(RenewAnswer::DataLost) => (RenewalOutcome::Lost, Err(LossReason::DataLost)),
        Ok(RenewAnswer::Corrupt) => (RenewalOutcome::Lost, Err(LossReason::Overwritten)),
        // An error is not a loss: the lease stands until its deadline.
        Err(StoreErrorKind::Indeterminate) => (RenewalOutcome::Unknown, Ok(Attempt::Unconfirmed)),
        Err(_) => (RenewalOutcome::Held, Ok(Attempt::Unconfirmed)),
    };
    if let Some(lease) = lease {
        if let Err(reason) = attempt {
            let _ = lease.lose(reason);
        }
        lease.metrics().renewal(outcome);
    }
    attempt
}
